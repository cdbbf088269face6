"""What the edge remembers on its own disk: dispatches under way, and records nobody took yet."""
