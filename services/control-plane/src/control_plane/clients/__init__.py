"""Whom the control plane asks: admission, over NATS."""
