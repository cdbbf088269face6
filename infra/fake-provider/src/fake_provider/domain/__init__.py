"""What is answered: pure functions from a request and a behaviour to bytes."""
