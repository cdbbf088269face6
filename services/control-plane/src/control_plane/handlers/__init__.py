"""What wakes the control plane: admin requests, notifications of the outbox, clock ticks."""
