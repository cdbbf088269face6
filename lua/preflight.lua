-- May a team send one request now? One call answers everything; only an admitted request writes.
--
-- KEYS  1 quota:{team}:rate:request_tat       ARGV  1 tier id the caller assumes; '' matches none
--       2 quota:{team}:rate:token_tat               2 interval of that tier, µs
--       3 quota:{team}:tier                         3 request burst, µs
--       4 quota:{team}:account-balance              4 token burst, µs
--                                                   5 life of a TAT, ms
--                                                   6 longest explicable request debt, µs
--                                                   7 longest explicable token debt, µs
--       If the tier has more than that:             8 1: the request limit is in shadow mode, else 0
--                                                   9 the same for the token limit
--       The tier's further limits, if any:         10 when the earlier of two days begins, µs
--                                                  11 when the later one begins
--                                                  12 when the later one ends
--       5… one or two keys for each                13… five for each: kind, 1 if in shadow mode, x y z
--          debt   its TAT                              what an admission adds, burst, longest, µs
--          lease  the leases                           most at once, the lease's name, its life µs
--          count  the counter of either day            most a day, what an admission adds, what is asked
--          spend  the counter of either period         most, nano-USD; when the later one begins, µs; 0
--       The endpoint's windows, the same way:
--          window its log                              most in it, its length µs, the request's name
--
-- Reply, an array:
--   1 'tier_missing' 'tier_differs' 'balance_missing' 'balance_negative' 'count_missing' 'limited'
--     or 'admitted', judged in this order
--   2 now, µs of this server's clock
--   3 request TAT, µs, after the decision; nil: no debt
--   4 token TAT, µs; nil: no debt
--   5 stored tier id; nil: missing
--   6 balance, nano-USD as text; nil: missing
--   7 1 if the stored request TAT lay beyond the longest debt and was judged as that, else 0
--   8 the same for the token TAT
--   and where ARGV 8 and on are given and the limits were judged:
--   9 which limits refuse, an array: 1 requests, 2 tokens, 3… the further ones. A limit in shadow
--     mode may be among them and the request still be admitted
--  10 two for each further limit, after the decision:
--     its TAT (nil: no debt), leases in flight, count (nil: missing; of spend nano-USD as text), or
--     use of a window (an array, see parts/window.lua); and 1 if capped, else 0
--
-- Writes  admitted: request TAT = max(TAT, now) + interval, living at least as long as the debt; each
--         further debt, count, lease and window likewise. A debt or a window that refuses in shadow
--         mode stays.
--         Any other answer: nothing; no value and no expiry changes.

local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local idle_ms = math.floor(now_us / 1000) + tonumber(ARGV[5])

-- part: parts/tat.lua

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

local request_refuses = (request_tat_us or 0) - tonumber(ARGV[3]) > now_us
local token_refuses = (token_tat_us or 0) - tonumber(ARGV[4]) > now_us

-- A tier without shadow mode and further limits is decided here, and pays nothing for them.
if #ARGV == 7 then
  if request_refuses or token_refuses then
    return reply('limited')
  end
  request_tat_us = advance_tat(KEYS[1], request_tat_us, tonumber(ARGV[2]))
  return reply('admitted')
end

-- Shadow mode is said as 1; anything else refuses.
local limited = request_refuses and ARGV[8] ~= '1' or token_refuses and ARGV[9] ~= '1'
local count_missing = false
local refusing, further, moves = {}, {}, {}
if request_refuses then
  refusing[1] = 1
end
if token_refuses then
  refusing[#refusing + 1] = 2
end
if #KEYS > 4 and (now_us < tonumber(ARGV[10]) or now_us >= tonumber(ARGV[12])) then
  return redis.error_reply('ERR the day of the caller is neither today nor next to it')
end

-- part: parts/window.lua

-- Each kind reads its limit at a key and an argument, and returns how many keys it has, whether
-- it refuses, its value, whether that was capped, and how an admission moves it to its next value.
local kinds = {}

function kinds.debt(key, arg)
  local tat_us, capped = read_tat(KEYS[key], tonumber(ARGV[arg + 4]))
  local refuses = (tat_us or 0) - tonumber(ARGV[arg + 3]) > now_us
  local by_us = tonumber(ARGV[arg + 2])
  return 1, refuses, tat_us, capped, function()
    if refuses then
      return tat_us
    end
    return advance_tat(KEYS[key], tat_us, by_us)
  end
end

function kinds.lease(key, arg)
  local name, life_us = ARGV[arg + 3], tonumber(ARGV[arg + 4])
  local others = redis.call('ZCOUNT', KEYS[key], now_us + 1, '+inf')
  if tonumber(redis.call('ZSCORE', KEYS[key], name) or 0) > now_us then
    others = others - 1
  end
  return 1, others >= tonumber(ARGV[arg + 2]), others, 0, function()
    redis.call('ZREMRANGEBYSCORE', KEYS[key], '-inf', now_us)
    redis.call('ZADD', KEYS[key], now_us + life_us, name)
    redis.call('PEXPIREAT', KEYS[key], idle_ms + math.ceil(life_us / 1000))
    return others + 1
  end
end

function kinds.count(key, arg)
  local counter = now_us < tonumber(ARGV[11]) and KEYS[key] or KEYS[key + 1]
  local text = redis.call('GET', counter)
  if not text then
    count_missing = true
    return 2, false, false, 0
  end
  local used, by = tonumber(text) + 0, tonumber(ARGV[arg + 3])
  local refuses = used + tonumber(ARGV[arg + 4]) > tonumber(ARGV[arg + 2])
  return 2, refuses, used, 0, function()
    if by > 0 then
      redis.call('SET', counter, used + by, 'KEEPTTL')
    end
    return used + by
  end
end

-- Spend grows when a call has ended: an admission doesn't move it.
function kinds.spend(key, arg)
  local counter = now_us < tonumber(ARGV[arg + 3]) and KEYS[key] or KEYS[key + 1]
  local spent, most = redis.call('GET', counter), ARGV[arg + 2]
  if not spent then
    count_missing = true
    return 2, false, false, 0
  end
  if spent ~= '0' and not string.find(spent, '^[1-9]%d*$') then
    error('spend that is no number')
  end
  -- As texts, which have no leading zeros: as numbers they could be longer than a double is exact.
  local refuses = #spent > #most or #spent == #most and spent >= most
  return 2, refuses, spent, 0, function() return spent end
end

function kinds.window(key, arg)
  local most, length_us = tonumber(ARGV[arg + 2]), tonumber(ARGV[arg + 3])
  local refuses, use, enter = window(KEYS[key], most, length_us, ARGV[arg + 4])
  return 1, refuses, use, 0, enter
end

local key, arg = 5, 13
while key <= #KEYS do
  local keys, refuses, value, capped, move = kinds[ARGV[arg]](key, arg)
  moves[#moves + 1] = move
  further[#further + 1] = value
  further[#further + 1] = capped
  if refuses then
    refusing[#refusing + 1] = #further / 2 + 2
    limited = limited or ARGV[arg + 1] ~= '1'
  end
  key, arg = key + keys, arg + 5
end

local function whole_reply(verdict)
  local found = reply(verdict)
  found[9], found[10] = refusing, further
  return found
end

if count_missing then
  return whole_reply('count_missing')
end
if limited then
  return whole_reply('limited')
end

if not request_refuses then
  request_tat_us = advance_tat(KEYS[1], request_tat_us, tonumber(ARGV[2]))
end
for number, move in ipairs(moves) do
  further[2 * number - 1] = move()
end
return whole_reply('admitted')
