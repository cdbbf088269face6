"""What the control plane decides: pure functions and frozen values."""
