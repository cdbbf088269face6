"""What the edge decides: pure functions and frozen values, without I/O."""
