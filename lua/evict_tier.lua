-- A team's tier changed: forget the mapping and refuse every fill that is older than the change.
--
-- KEYS  1 quota:{team}:tier                   ARGV  1 the team's tier version after the change
--       2 quota:{team}:tier:version                 2 life of the fence, ms
--
-- Reply  'evicted', 'fenced' (no mapping was there), or 'duplicate': this version or a newer one
--        is known already, and the mapping, if any, was filled with it.
--
-- Writes  evicted: no mapping, and the fence = version. fenced: the fence. duplicate: nothing.

local fence = redis.call('GET', KEYS[2])
if fence and tonumber(fence) >= tonumber(ARGV[1]) then
  return 'duplicate'
end
local deleted = redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return deleted == 1 and 'evicted' or 'fenced'
