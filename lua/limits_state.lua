-- Everything the limits and the budget know of a team, at one moment.
--
-- KEYS  1 quota:{team}:rate:request_tat       ARGV  none without further limits; with them:
--       2 quota:{team}:rate:token_tat               1 when the later of two days begins, µs
--       3 quota:{team}:tier                         2… the kind of each; of a spend also when the
--       4 quota:{team}:tier:version                      later of its two periods begins, µs
--       5 quota:{team}:account-balance
--       6 quota:{team}:account-balance:version
--       7… further limits: of a debt its TAT, of a lease the leases, of a count or a spend the
--          counters of either period
--
-- Reply, an array: 1 now, µs of this server's clock, then the six values as text, as stored, and of
--   each further limit its text, or how many leases are in flight; nil: missing.
--
-- Writes  nothing, and extends no life.

local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local reply = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6])
table.insert(reply, 1, now_us)

local key, arg = 7, 2
while key <= #KEYS do
  if ARGV[arg] == 'lease' then
    reply[#reply + 1] = redis.call('ZCOUNT', KEYS[key], now_us + 1, '+inf')
  elseif ARGV[arg] == 'debt' then
    reply[#reply + 1] = redis.call('GET', KEYS[key])
  else
    local is_spend = ARGV[arg] == 'spend'
    local boundary_us = tonumber(is_spend and ARGV[arg + 1] or ARGV[1])
    reply[#reply + 1] = redis.call('GET', KEYS[now_us < boundary_us and key or key + 1])
    key, arg = key + 1, is_spend and arg + 1 or arg
  end
  key, arg = key + 1, arg + 1
end
return reply
