-- A TAT: when a debt will be paid off, µs of this server's clock. A part of scripts that have `now_us`
-- and `idle_ms`, unix ms until when a TAT without a debt lives: its text stands where they name it.
--
-- Returns  read_tat: the TAT, at most the longest explicable debt from now (false: no debt), and 1
--          where it lay beyond that, else 0
--          advance_tat: max(TAT, now) and what is added
--
-- Writes   advance_tat: the TAT, living at least as long as its debt; if there is something to add.

-- Text that is no number fails here, before anything is written: never an admission by mistake.
local function read_tat(key, max_debt_us)
  local text = redis.call('GET', key)
  if not text then
    return false, 0
  end
  local tat_us = tonumber(text)
  if tat_us > now_us + max_debt_us then
    return now_us + max_debt_us, 1
  end
  return tat_us, 0
end

local function advance_tat(key, tat_us, by_us)
  if by_us == 0 then
    return tat_us
  end
  tat_us = math.max(tat_us or 0, now_us) + by_us
  -- Numbers, not text made here: Lua would write them with 14 digits.
  redis.call('SET', key, tat_us, 'PXAT', math.max(idle_ms, math.ceil(tat_us / 1000)))
  return tat_us
end
