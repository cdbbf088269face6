-- Look-aside fill of what was spent in a period, as the database says.
--
-- KEYS  1 quota:{team}:spend:{period}           ARGV  1 spent, nano-USD
--       2 quota:{team}:spend:{period}:version         2 the account's version that was read
--         or those of a key                           3 when both expire, unix ms
--
-- Reply  'filled', 'present' (it is counted; rough debits may be in it), or 'stale': spend of a
--        newer version was there after the database was read.
--
-- Writes  filled: both keys. present, stale: nothing.

if redis.call('EXISTS', KEYS[1]) == 1 then
  return 'present'
end
local fence = redis.call('GET', KEYS[2])
if fence and tonumber(fence) > tonumber(ARGV[2]) then
  return 'stale'
end
redis.call('SET', KEYS[1], ARGV[1], 'PXAT', ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], 'PXAT', ARGV[3])
return 'filled'
