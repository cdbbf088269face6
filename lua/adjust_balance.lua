-- A credit or an adjustment was committed: move the cached balance by it, once and in order.
--
-- KEYS  1 quota:{team}:account-balance          ARGV  1 amount, nano-USD, negative lowers
--       2 quota:{team}:account-balance:version        2 the account's version after it
--                                                     3 life of both, ms
--
-- Reply  'applied'    the cached version was the one right before
--        'duplicate'  this version or a newer one is in already
--        'evicted'    a version in between was missed: the balance is gone, to be filled again
--        'fenced'     no balance was there
--
-- Writes  applied: both values and their life, because a version announced in a key's last second
--         must still refuse a fill that read the database before the commit. duplicate: nothing.
--         evicted, fenced: no balance, and the version as a fence against such a fill.

local version = redis.call('GET', KEYS[2])
local known, announced = tonumber(version or -1), tonumber(ARGV[2])
if known >= announced then
  return 'duplicate'
end
local present = redis.call('EXISTS', KEYS[1]) == 1
if present and known == announced - 1 then
  redis.call('INCRBY', KEYS[1], ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
  return 'applied'
end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return present and 'evicted' or 'fenced'
