-- A call is still in flight: its lease lives on, from now.
--
-- KEYS  1 quota:{team}:leases                 ARGV  1 the lease's name
--                                                   2 its life, µs
--                                                   3 how long the key outlives it, ms
--
-- Reply  1 if it was held, 0 if it had expired or nobody knew it
--
-- Writes  always: the lease, held again if it was not, because the call is in flight, whatever the
--         limit says; and the life of the key.

local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local expires_us = now_us + tonumber(ARGV[2])
local held = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0) > now_us
redis.call('ZADD', KEYS[1], expires_us, ARGV[1])
redis.call('PEXPIREAT', KEYS[1], math.floor(expires_us / 1000) + tonumber(ARGV[3]))
return held and 1 or 0
