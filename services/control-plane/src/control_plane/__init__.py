"""The control plane: the admin API, and the change events that follow each commit."""
