-- Settlement committed: what is counted as spent in a period becomes what was settled, unless newer
-- is known.
--
-- KEYS  1 quota:{team}:spend:{period}           ARGV  1 settled spend, nano-USD
--       2 quota:{team}:spend:{period}:version         2 the account's version after the commit
--         or those of a key                           3 when both expire, unix ms
--
-- Reply  'applied', 'stale' (a newer version is known), or 'duplicate': spend of this very version
--        is there, and all that it has more are rough debits made since, which must stay.
--
-- Writes  applied: both keys, also when nothing was counted. stale, duplicate: nothing.

local life = 'PXAT'

-- part: parts/fenced_refresh.lua
