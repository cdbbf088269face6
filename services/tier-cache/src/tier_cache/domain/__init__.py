"""What tier-cache decides: what a change event means for Redis. Pure functions, without I/O."""
