"""What settlement decides: pure functions and frozen values."""
