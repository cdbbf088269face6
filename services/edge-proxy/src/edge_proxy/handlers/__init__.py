"""What wakes the edge: a client's request, and what it takes to answer it."""
