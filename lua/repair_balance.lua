-- Nothing is pending and yet the cached balance differs from the settled one of the same version
-- (a rough debit whose record never came): set it right, unless anything moved since it was read.
--
-- KEYS  1 quota:{team}:account-balance          ARGV  1 cached balance that was read, nano-USD
--       2 quota:{team}:account-balance:version        2 settled balance, nano-USD
--                                                     3 version of both
--                                                     4 life of both, ms
--
-- Reply  'applied', or 'moved': the balance or its version is another by now.
--
-- Writes  applied: the balance, and the life of both keys. moved: nothing.

if redis.call('GET', KEYS[1]) ~= ARGV[1] or redis.call('GET', KEYS[2]) ~= ARGV[3] then
  return 'moved'
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 'applied'
