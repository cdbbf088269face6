"""tier-cache: the look-aside that fills and evicts team facts in Redis from the database."""
