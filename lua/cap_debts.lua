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

local function cap(key, max_debt_us)
  local text = redis.call('GET', key)
  if not text then
    return false, 0
  end
  local tat_us = tonumber(text)
  if tat_us <= now_us + max_debt_us then
    return tat_us, 0
  end
  tat_us = now_us + max_debt_us
  local idle_ms = math.floor(now_us / 1000) + tonumber(ARGV[1])
  local expires_ms = math.max(idle_ms, math.ceil(tat_us / 1000))
  -- Numbers, not text made here: Lua would write them with 14 digits.
  redis.call('SET', key, tat_us, 'PXAT', expires_ms)
  return tat_us, 1
end

local reply = { now_us }
for number, key in ipairs(KEYS) do
  reply[2 * number], reply[2 * number + 1] = cap(key, tonumber(ARGV[number + 1]))
end
return reply
