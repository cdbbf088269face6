-- May a team send one request now? One call answers everything; only an admitted request writes.
--
-- KEYS  1 quota:{team}:rate:request_tat       ARGV  1 tier id the caller assumes; '' matches none
--       2 quota:{team}:rate:token_tat               2 interval of that tier, µs
--       3 quota:{team}:tier                         3 request burst, µs
--       4 quota:{team}:account-balance              4 token burst, µs
--                                                   5 life of the request TAT, ms
--                                                   6 longest explicable request debt, µs
--                                                   7 longest explicable token debt, µs
--
-- Reply, an array:
--   1 'tier_missing' 'tier_differs' 'balance_missing' 'balance_negative' 'limited' or 'admitted',
--     judged in this order
--   2 now, µs of this server's clock
--   3 request TAT, µs, after the decision; nil: no debt
--   4 token TAT, µs; nil: no debt
--   5 stored tier id; nil: missing
--   6 balance, nano-USD as text; nil: missing
--   7 1 if the stored request TAT lay beyond the longest debt and was judged as that, else 0
--   8 the same for the token TAT
--
-- Writes  admitted: request TAT = max(TAT, now) + interval, living at least as long as the debt.
--         Any other answer: nothing; no value and no expiry changes.

local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])

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

local request_tat_us, request_capped = read_tat(KEYS[1], tonumber(ARGV[6]))
local token_tat_us, token_capped = read_tat(KEYS[2], tonumber(ARGV[7]))
local tier = redis.call('GET', KEYS[3])
local balance = redis.call('GET', KEYS[4])

local function reply(verdict)
  return {
    verdict, now_us, request_tat_us, token_tat_us, tier, balance, request_capped, token_capped,
  }
end

if not tier then
  return reply('tier_missing')
end
if tier ~= ARGV[1] then
  return reply('tier_differs')
end
if not balance then
  return reply('balance_missing')
end
-- By its first character alone: as a number it could be longer than a double is exact.
if not string.find(balance, '^%d') then
  return reply('balance_negative')
end
local request_ready_us = (request_tat_us or 0) - tonumber(ARGV[3])
local token_ready_us = (token_tat_us or 0) - tonumber(ARGV[4])
if request_ready_us > now_us or token_ready_us > now_us then
  return reply('limited')
end

request_tat_us = math.max(request_tat_us or 0, now_us) + tonumber(ARGV[2])
local idle_ms = math.floor(now_us / 1000) + tonumber(ARGV[5])
local expires_ms = math.max(idle_ms, math.ceil(request_tat_us / 1000))
-- Numbers, not text made here: Lua would write them with 14 digits.
redis.call('SET', KEYS[1], request_tat_us, 'PXAT', expires_ms)
return reply('admitted')
