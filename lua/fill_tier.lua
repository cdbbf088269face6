-- Look-aside fill of a team's tier mapping with what the database said.
--
-- KEYS  1 quota:{team}:tier                   ARGV  1 tier id
--       2 quota:{team}:tier:version                 2 the team's tier version that was read
--                                                   3 life of the mapping, ms
--                                                   4 life of the fence, ms; longer
--
-- Reply  'filled' or 'stale': a newer version was announced after the database was read.
--
-- Writes  filled: the mapping, and the fence = version. stale: nothing.

local fence = redis.call('GET', KEYS[2])
if fence and tonumber(fence) > tonumber(ARGV[2]) then
  return 'stale'
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[4])
return 'filled'
