-- Everything the limits and the budget know of a team, at one moment.
--
-- KEYS  1 quota:{team}:rate:request_tat       ARGV  none
--       2 quota:{team}:rate:token_tat
--       3 quota:{team}:tier
--       4 quota:{team}:tier:version
--       5 quota:{team}:account-balance
--       6 quota:{team}:account-balance:version
--
-- Reply, an array: 1 now, µs of this server's clock, then the six values as text, as stored;
--   nil: missing.
--
-- Writes  nothing, and extends no life.

local time = redis.call('TIME')
local stored = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6])
return { tonumber(time[1]) * 1000000 + tonumber(time[2]), unpack(stored) }
