-- What was settled takes the place of what is cached, under the account's version. A part of scripts
-- that have KEYS of a value and of its version, ARGV with both and how long they live, and `life`,
-- 'PX' or 'PXAT', which says how that is meant: its text stands at their end.
--
-- Returns  'applied', 'stale' (a newer version is known), or 'duplicate': a value of this very
--          version is there, and all that it differs by are rough debits made since, which must stay.
--
-- Writes   applied: both keys, also when no value was there. stale, duplicate: nothing.

local known, settled = tonumber(redis.call('GET', KEYS[2]) or -1), tonumber(ARGV[2])
if known > settled then
  return 'stale'
end
if known == settled and redis.call('EXISTS', KEYS[1]) == 1 then
  return 'duplicate'
end
redis.call('SET', KEYS[1], ARGV[1], life, ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], life, ARGV[3])
return 'applied'
