-- What the logs of sliding windows say at one moment.
--
-- KEYS  1… the log of each window             ARGV  two for each: most requests, its length µs
--       all of one team
--
-- Reply, an array: 1 now, µs of this server's clock, then for each window an array: how many requests
--   count; when it will admit again, µs, 0 where it admits; when none of those will count any more,
--   µs, 0 where none does
--
-- Writes  nothing, and extends no life.

local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])

-- part: parts/window.lua

local reply = { now_us }
for number, key in ipairs(KEYS) do
  local length_us = tonumber(ARGV[2 * number])
  local refuses, use = window(key, tonumber(ARGV[2 * number - 1]), length_us)
  if not refuses and use[1] > 0 then
    local newest = redis.call('ZCOUNT', key, '-inf', now_us + length_us) - 1
    use[3] = tonumber(redis.call('ZRANGE', key, newest, newest, 'WITHSCORES')[2]) + length_us
  end
  reply[number + 1] = use
end
return reply
