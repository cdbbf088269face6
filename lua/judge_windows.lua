-- May one more request come to an endpoint, by its sliding windows alone? For requests that have no
-- preflight, whose windows preflight.lua judges.
--
-- KEYS  1… the log of each window             ARGV  1 the request's name, in no log yet
--       all of one team or of one address           2… three for each: 1 if in shadow mode,
--                                                      most requests, its length µs
--
-- Reply, an array: 1 'limited' or 'admitted', 2 now, µs of this server's clock, then for each window,
--   after the decision, an array: how many requests count; when it will admit again and when none of
--   those will count any more, µs, both 0 where it admits
--
-- Writes  admitted: the request is entered into every log but those whose window refuses in shadow
--         mode. limited: nothing.

local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])

-- part: parts/window.lua

local limited, reply, enters = false, { 'limited', now_us }, {}
for number, key in ipairs(KEYS) do
  local arg = 3 * number - 1
  local refuses, use, enter = window(key, tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2]), ARGV[1])
  limited = limited or refuses and ARGV[arg] ~= '1'
  reply[number + 2], enters[number] = use, enter
end
if limited then
  return reply
end

reply[1] = 'admitted'
for number, enter in ipairs(enters) do
  reply[number + 2] = enter()
end
return reply
