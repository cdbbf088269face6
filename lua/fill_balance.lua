-- Look-aside fill of a team's balance with the settled balance that the database said.
--
-- KEYS  1 quota:{team}:account-balance          ARGV  1 settled balance, nano-USD
--       2 quota:{team}:account-balance:version        2 the account's version that was read
--                                                     3 life of both, ms
--
-- Reply  'filled', 'present' (a balance is there; it may hold rough debits), or 'stale': a newer
--        version was announced after the database was read.
--
-- Writes  filled: both keys. present, stale: nothing.

if redis.call('EXISTS', KEYS[1]) == 1 then
  return 'present'
end
local fence = redis.call('GET', KEYS[2])
if fence and tonumber(fence) > tonumber(ARGV[2]) then
  return 'stale'
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return 'filled'
