"""What settlement remembers: records and accounts in Postgres, balances in Redis, the stream."""
