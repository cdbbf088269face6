"""What tier-cache reads: the database, through a bounded pool that can't write."""
