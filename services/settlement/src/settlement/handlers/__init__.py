"""What wakes settlement: records on the stream, and the clock."""
