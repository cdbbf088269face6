"""What admission remembers: teams' limits in Redis, policies and prices in memory."""
