-- Look-aside fill of what a team has used on a day, as the database's records say.
--
-- KEYS  1 quota:{team}:day:{day}:requests     ARGV  1 requests
--       2 quota:{team}:day:{day}:tokens             2 tokens
--                                                   3 when both expire, unix ms
--
-- Reply  how many of the two were filled; what is there already counts on, and stays
--
-- Writes  the counters that are missing. Both there: nothing.

local filled = 0
for number, key in ipairs(KEYS) do
  if redis.call('SET', key, ARGV[number], 'NX', 'PXAT', ARGV[3]) then
    filled = filled + 1
  end
end
return filled
