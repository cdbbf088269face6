-- A call has ended without a postflight: its lease is free.
--
-- KEYS  1 quota:{team}:leases                 ARGV  1 the lease's name
--
-- Reply  1 if it was there, else 0
--
-- Writes  the lease is gone. If it wasn't there: nothing.

return redis.call('ZREM', KEYS[1], ARGV[1])
