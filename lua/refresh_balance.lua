-- Settlement committed: the cached balance becomes the settled one, unless a newer one is known.
--
-- KEYS  1 quota:{team}:account-balance          ARGV  1 settled balance, nano-USD
--       2 quota:{team}:account-balance:version        2 the account's version after the commit
--                                                     3 life of both, ms
--
-- Reply  'applied', 'stale' (a newer version is known), or 'duplicate': a balance of this very
--        version is there, and all that it lacks are rough debits made since, which must stay.
--
-- Writes  applied: both keys, also when no balance was there. stale, duplicate: nothing.

local life = 'PX'

-- part: parts/fenced_refresh.lua
