-- A sliding window: so many requests at most in any stretch of time as long as it, by a log of them.
-- A part of scripts that have `now_us`: its text stands where they name it.
--
-- The log is a sorted set with a member for each request, its score when that was, µs. A request
-- counts for exactly the window's length. One that lies further ahead than that is of before this
-- server's clock was stepped back, and doesn't count.
--
-- Returns  whether the window refuses
--          an array: how many requests count; when it will admit again and when none of those will
--          count any more, µs, both 0 where it admits
--          what an admission has to call: it enters the request, where the window doesn't refuse,
--          and returns such an array of after it
--
-- Writes   nothing by itself. When entered: what has left the window leaves the log, so the log never
--          holds more than the limit; it lives until its last request leaves.

local function window(key, most, length_us, name)
  local left_us = now_us - length_us
  local used = redis.call('ZCOUNT', key, left_us + 1, now_us + length_us)
  if used >= most then
    local before = redis.call('ZCOUNT', key, '-inf', left_us)
    local function leaves_us(position)
      local found = redis.call('ZRANGE', key, before + position, before + position, 'WITHSCORES')
      return tonumber(found[2]) + length_us
    end
    local full = { used, leaves_us(used - most), leaves_us(used - 1) }
    return true, full, function()
      return full
    end
  end
  return false, { used, 0, 0 }, function()
    redis.call('ZREMRANGEBYSCORE', key, '-inf', left_us)
    redis.call('ZREMRANGEBYSCORE', key, now_us + length_us + 1, '+inf')
    redis.call('ZADD', key, now_us, name)
    redis.call('PEXPIREAT', key, math.ceil((now_us + length_us) / 1000))
    return { used + 1, 0, 0 }
  end
end
