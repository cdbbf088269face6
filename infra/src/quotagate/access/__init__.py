"""Who may do what on NATS and Valkey: one user per service, limited to its subjects and keys."""
