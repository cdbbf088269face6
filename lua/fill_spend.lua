-- Look-aside fill of what was spent in a period, as the database says.
--
-- KEYS  1 quota:{team}:spend:{period}           ARGV  1 spent, nano-USD
--       2 quota:{team}:spend:{period}:version         2 the account's version that was read
--         or those of a key                           3 when both expire, unix ms
--
-- Reply  'filled', 'present' (it is counted; rough debits may be in it), or 'stale': spend of a
--        newer version was there after the database was read.
--
-- Writes  filled: both keys. present, stale: nothing.

local life = 'PXAT'

-- part: parts/fenced_fill.lua
