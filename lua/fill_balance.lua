-- Look-aside fill of a team's balance with the settled balance that the database said.
--
-- KEYS  1 quota:{team}:account-balance          ARGV  1 settled balance, nano-USD
--       2 quota:{team}:account-balance:version        2 the account's version that was read
--                                                     3 life of both, ms
--
-- Reply  'filled', 'present' (a balance is there; it may hold rough debits), or 'stale': a newer
--        version was announced after the database was read.
--
-- Writes  filled: both keys. present, stale: nothing.

local life = 'PX'

-- part: parts/fenced_fill.lua
