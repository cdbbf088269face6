-- Nothing is pending and yet what is counted as spent differs from what was settled (a rough debit
-- whose record never came): set it right, unless anything moved since it was read.
--
-- KEYS  1 quota:{team}:spend:{period}           ARGV  1 spend that was read, nano-USD
--       2 quota:{team}:spend:{period}:version         2 its version that was read
--         or those of a key                           3 settled spend, nano-USD
--                                                     4 the account's version
--                                                     5 when both expire, unix ms
--
-- Reply  'applied', or 'moved': the spend or its version is another by now.
--
-- Writes  applied: both keys. moved: nothing.

if redis.call('GET', KEYS[1]) ~= ARGV[1] or redis.call('GET', KEYS[2]) ~= ARGV[2] then
  return 'moved'
end
redis.call('SET', KEYS[1], ARGV[3], 'PXAT', ARGV[5])
redis.call('SET', KEYS[2], ARGV[4], 'PXAT', ARGV[5])
return 'applied'
