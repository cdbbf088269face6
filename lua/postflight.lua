-- Charge one attempt: the token TAT by its usage, the cached balance by its rough debit.
-- Never refuses: what was used was used.
--
-- KEYS  1 quota:{team}:rate:token_tat         ARGV  1 cost of the usage, µs; 0: no usage
--       2 quota:{team}:rate:request_tat             2 rough debit, nano-USD; 0: none
--       3 quota:{team}:account-balance              3 life of the token TAT, ms
--       4 quota:{team}:account-balance:version      4 life of the balance, ms
--                                                   5 longest explicable token debt, µs
--                                                   6 longest explicable request debt, µs
--
-- Reply, an array:
--   1 now, µs of this server's clock
--   2 request TAT, µs; nil: no debt
--   3 token TAT, µs, after the charge; nil: no debt
--   4 balance, nano-USD as text, after the debit; nil: missing, so nothing was debited
--   5 1 if the stored request TAT lay beyond the longest debt, else 0
--   6 the same for the token TAT, which was then advanced from the longest debt
--
-- Writes  cost > 0: token TAT = max(TAT, now) + cost, living at least as long as the debt.
--         debit > 0 and a balance is there: the balance, and the life of both balance keys.
--         A missing balance is never created. Cost and debit 0: nothing.

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

local token_tat_us, token_capped = read_tat(KEYS[1], tonumber(ARGV[5]))
local request_tat_us, request_capped = read_tat(KEYS[2], tonumber(ARGV[6]))
local balance = redis.call('GET', KEYS[3])

-- First, because it alone can fail (a balance beyond 64 bits), and then nothing must be written.
if balance and ARGV[2] ~= '0' then
  redis.call('DECRBY', KEYS[3], ARGV[2])
  -- Read again as text: DECRBY's reply arrives here as a double and may have lost digits.
  balance = redis.call('GET', KEYS[3])
  redis.call('PEXPIRE', KEYS[3], ARGV[4])
  redis.call('PEXPIRE', KEYS[4], ARGV[4])
end

local cost_us = tonumber(ARGV[1])
if cost_us > 0 then
  token_tat_us = math.max(token_tat_us or 0, now_us) + cost_us
  local idle_ms = math.floor(now_us / 1000) + tonumber(ARGV[3])
  local expires_ms = math.max(idle_ms, math.ceil(token_tat_us / 1000))
  -- Numbers, not text made here: Lua would write them with 14 digits.
  redis.call('SET', KEYS[1], token_tat_us, 'PXAT', expires_ms)
end

return { now_us, request_tat_us, token_tat_us, balance, request_capped, token_capped }
