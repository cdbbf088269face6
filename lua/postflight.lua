-- Charge one attempt: the debts by its usage, the cached balance by its rough debit, the day's
-- counters; and end its lease. Never refuses: what was used was used.
--
-- KEYS  1 quota:{team}:rate:token_tat         ARGV  1 cost of the usage, µs; 0: no usage
--       2 quota:{team}:rate:request_tat             2 rough debit, nano-USD; 0: none
--       3 quota:{team}:account-balance              3 life of a TAT, ms
--       4 quota:{team}:account-balance:version      4 life of the balance, ms
--                                                   5 longest explicable token debt, µs
--                                                   6 longest explicable request debt, µs
--       The tier's further limits, if any:          7 when the earlier of two days begins, µs
--                                                   8 when the later one begins
--                                                   9 when the later one ends
--       5… one or two keys for each                10… three for each: kind, x y
--          debt   its TAT                              cost µs, longest explicable debt µs
--          lease  the leases                           the lease that ends ('' none), 0
--          count  the counter of either day            tokens or requests to be added, 0
--          spend  the counter of either period         when the later one begins, µs; 0
--                                                      (what is added is the rough debit)
--
-- Reply, an array:
--   1 now, µs of this server's clock
--   2 request TAT, µs; nil: no debt
--   3 token TAT, µs, after the charge; nil: no debt
--   4 balance, nano-USD as text, after the debit; nil: missing, so nothing was debited
--   5 1 if the stored request TAT lay beyond the longest debt, else 0
--   6 the same for the token TAT, which was then advanced from the longest debt
--   7 if there are further limits, two for each, after the charge: its TAT (nil: no debt), leases in
--     flight, or count (nil: missing, so nothing was counted; of spend nano-USD as text); and 1 if
--     capped, else 0
--
-- Writes  cost > 0: token TAT = max(TAT, now) + cost, living at least as long as the debt; further
--         debts likewise.
--         debit > 0 and a balance is there: the balance, and the life of both balance keys.
--         A counter that is there: what is added. A lease that is there: it is gone.
--         A missing balance or counter is never created. All of it 0: nothing.

local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local idle_ms = math.floor(now_us / 1000) + tonumber(ARGV[3])

-- part: parts/tat.lua

local token_tat_us, token_capped = read_tat(KEYS[1], tonumber(ARGV[5]))
local request_tat_us, request_capped = read_tat(KEYS[2], tonumber(ARGV[6]))
local balance = redis.call('GET', KEYS[3])

-- A tier without further limits pays nothing for them.
local further, moves
if #KEYS > 4 then
  -- Each kind reads its limit at a key and an argument, and returns how many keys it has, whether
  -- its value was capped, and how the charge moves it to its next value.
  local kinds = {}

  function kinds.debt(key, arg)
    local tat_us, capped = read_tat(KEYS[key], tonumber(ARGV[arg + 2]))
    return 1, capped, function()
      return advance_tat(KEYS[key], tat_us, tonumber(ARGV[arg + 1]))
    end
  end

  function kinds.lease(key, arg)
    local live = redis.call('ZCOUNT', KEYS[key], now_us + 1, '+inf')
    local expires_us = redis.call('ZSCORE', KEYS[key], ARGV[arg + 1])
    return 1, 0, function()
      if not expires_us then
        return live
      end
      redis.call('ZREM', KEYS[key], ARGV[arg + 1])
      return tonumber(expires_us) > now_us and live - 1 or live
    end
  end

  function kinds.count(key, arg)
    local counter = now_us < tonumber(ARGV[8]) and KEYS[key] or KEYS[key + 1]
    local is_near = now_us >= tonumber(ARGV[7]) and now_us < tonumber(ARGV[9])
    local text = is_near and redis.call('GET', counter)
    local used, by = text and tonumber(text) + 0, tonumber(ARGV[arg + 1])
    return 2, 0, function()
      if not used or by == 0 then
        return used
      end
      -- Doubles are exact up to here; nothing real counts as far.
      used = math.min(used + by, 9007199254740991)
      redis.call('SET', counter, used, 'KEEPTTL')
      return used
    end
  end

  -- Spend of 10^18 nano-USD or more is above every limit, and grows no further: so adding can't
  -- fail, after something was written, for being beyond 64 bits.
  function kinds.spend(key, arg)
    local counter = now_us < tonumber(ARGV[arg + 1]) and KEYS[key] or KEYS[key + 1]
    local is_near = now_us >= tonumber(ARGV[7]) and now_us < tonumber(ARGV[9])
    local spent = is_near and redis.call('GET', counter)
    if spent and spent ~= '0' and not string.find(spent, '^[1-9]%d*$') then
      error('spend that is no number')
    end
    return 2, 0, function()
      if not spent or ARGV[2] == '0' or #spent > 18 then
        return spent
      end
      if #ARGV[2] > 18 then
        redis.call('SET', counter, '1000000000000000000', 'KEEPTTL')
      else
        redis.call('INCRBY', counter, ARGV[2])
      end
      -- As text: INCRBY's reply arrives here as a double and may have lost digits.
      return redis.call('GET', counter)
    end
  end

  further, moves = {}, {}
  local key, arg = 5, 10
  while key <= #KEYS do
    local keys, capped, move = kinds[ARGV[arg]](key, arg)
    moves[#moves + 1] = move
    further[2 * #moves] = capped
    key, arg = key + keys, arg + 3
  end
end

-- First, because it alone can fail (a balance beyond 64 bits), and then nothing must be written.
if balance and ARGV[2] ~= '0' then
  redis.call('DECRBY', KEYS[3], ARGV[2])
  -- Read again as text: DECRBY's reply arrives here as a double and may have lost digits.
  balance = redis.call('GET', KEYS[3])
  redis.call('PEXPIRE', KEYS[3], ARGV[4])
  redis.call('PEXPIRE', KEYS[4], ARGV[4])
end

token_tat_us = advance_tat(KEYS[1], token_tat_us, tonumber(ARGV[1]))
if moves then
  for number, move in ipairs(moves) do
    further[2 * number - 1] = move()
  end
end

return { now_us, request_tat_us, token_tat_us, balance, request_capped, token_capped, further }
