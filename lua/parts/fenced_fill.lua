-- A look-aside fill under a version's fence. A part of scripts that have KEYS of a value and of its
-- version, ARGV with both and how long they live, and `life`, 'PX' or 'PXAT', which says how that is
-- meant: its text stands at their end.
--
-- Returns  'filled', 'present' (a value is there; it may hold rough debits), or 'stale': a newer
--          version was there after the database was read.
--
-- Writes   filled: both keys. present, stale: nothing.

if redis.call('EXISTS', KEYS[1]) == 1 then
  return 'present'
end
local fence = redis.call('GET', KEYS[2])
if fence and tonumber(fence) > tonumber(ARGV[2]) then
  return 'stale'
end
redis.call('SET', KEYS[1], ARGV[1], life, ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], life, ARGV[3])
return 'filled'
