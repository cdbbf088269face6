-- Bring back TATs further ahead than any usage can explain (this server's clock was stepped back).
-- Preflight only judges such a TAT as the longest debt; while it refuses it writes nothing, so
-- without this call it would refuse until the clock has caught up.
--
-- KEYS  1… a team's TATs                      ARGV  1 life of a TAT, ms
--                                                   2… for each, its longest debt, µs
--
-- Reply, an array: 1 now, µs of this server's clock, then two for each TAT:
--   the TAT, µs; nil: no debt
--   1 if it was brought back, else 0
--
-- Writes  a TAT beyond its longest debt: now + that debt, living as long. Any other: nothing.

local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local idle_ms = math.floor(now_us / 1000) + tonumber(ARGV[1])

-- part: parts/tat.lua

local reply = { now_us }
for number, key in ipairs(KEYS) do
  local longest_us = tonumber(ARGV[number + 1])
  local tat_us, capped = read_tat(key, longest_us)
  if capped == 1 then
    tat_us = advance_tat(key, false, longest_us)
  end
  reply[2 * number], reply[2 * number + 1] = tat_us, capped
end
return reply
