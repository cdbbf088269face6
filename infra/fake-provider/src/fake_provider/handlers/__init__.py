"""What wakes the provider: inference calls, and the questions of tests."""
