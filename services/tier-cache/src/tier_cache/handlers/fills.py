"""Look-aside fills: a team's tier, balance, day or spend was missing in Redis, and is put there.

Between the reading and the writing the fact may change. The change leaves its version in Redis as a
fence (see `handlers/changes.py`), so a fill that comes late is refused there, and reads again.
"""

from functools import partial

from prometheus_client import Counter

from contracts.cache import (
    BalanceFillReply,
    BalanceFillRequest,
    DayFillReply,
    DayFillRequest,
    SpendFillReply,
    SpendFillRequest,
    TierResolveReply,
    TierResolveRequest,
)
from kit.crashpoint import crash_at
from kit.money import ceil_nano_usd, exact_sum, floor_nano_usd
from kit.single_flight import SingleFlight
from redis_scripts import (
    BalanceFill,
    RedisScripts,
    RedisScriptsError,
    SettledBalance,
    Spend,
    SpendFill,
    TierFill,
)
from tier_cache.domain.days import Day, share_of
from tier_cache.domain.facts import TeamTier
from tier_cache.domain.spends import owed_of
from tier_cache.errors import ContendedError, TierCacheError
from tier_cache.handlers.failures import unavailable
from tier_cache.store.database import Database
from tier_cache.store.waiting import WaitingRecords

# Each further one needs another change of the same team within milliseconds.
_MAX_READS = 3

_FAILURES = (TierCacheError, RedisScriptsError)
_FILLS = Counter(
    "quotagate_tier_cache_fills_total",
    "Fills of Redis, by kind and result; stale ones were refused by the fence.",
    ["kind", "result"],
)


class Fills:
    """Answers fills. Those of one team that wait together are one: one query, one write."""

    def __init__(self, database: Database, scripts: RedisScripts, waiting: WaitingRecords) -> None:
        self._database = database
        self._waiting = waiting
        self._scripts = scripts
        self._tiers = SingleFlight[str, TeamTier | None]()
        self._balances = SingleFlight[str, bool]()
        self._days = SingleFlight[tuple[str, Day], bool]()
        self._spend = SingleFlight[SpendFillRequest, bool]()

    async def resolve_tier(self, request: TierResolveRequest) -> TierResolveReply:
        """Put a team's tier into Redis.

        Raises:
            ReplyError: a store failed, or the team changed too fast to follow.

        """
        fill = partial(self._fill_tier, request.team_id)
        try:
            tier = await self._tiers.run(request.team_id, fill)
        except _FAILURES as error:
            raise unavailable("tier", error) from error
        return TierResolveReply(found=tier is not None, tier_id=tier.tier_id if tier else None)

    async def fill_balance(self, request: BalanceFillRequest) -> BalanceFillReply:
        """Put a team's settled balance into Redis, unless one is there.

        Raises:
            ReplyError: a store failed, or the account changed too fast to follow.

        """
        fill = partial(self._fill_balance, request.team_id)
        try:
            return BalanceFillReply(found=await self._balances.run(request.team_id, fill))
        except _FAILURES as error:
            raise unavailable("balance", error) from error

    async def fill_day(self, request: DayFillRequest) -> DayFillReply:
        """Put what a team used on a day into Redis, unless it is there.

        Counted are the records that are stored and those that wait in the stream. What is still in
        flight isn't among them: its tokens are counted when it ends, its request is not.

        Raises:
            ReplyError: a store failed.

        """
        which = (request.team_id, Day(request.start_us, request.end_us))
        try:
            return DayFillReply(found=await self._days.run(which, partial(self._fill_day, *which)))
        except _FAILURES as error:
            raise unavailable("day", error) from error

    async def fill_spend(self, request: SpendFillRequest) -> SpendFillReply:
        """Put what a team or a key spent in a period into Redis, unless it is there.

        Counted is what was settled, what is pending, and what waits in the stream.

        Raises:
            ReplyError: a store failed, or the account changed too fast to follow.

        """
        try:
            found = await self._spend.run(request, partial(self._fill_spend, request))
        except _FAILURES as error:
            raise unavailable("spend", error) from error
        return SpendFillReply(found=found)

    async def _fill_tier(self, team_id: str) -> TeamTier | None:
        for _ in range(_MAX_READS):
            tier = await self._database.tier(team_id)
            if tier is None:
                _FILLS.labels("tier", "unknown_team").inc()
                return None
            crash_at("tier_cache.read")
            result = await self._scripts.fill_tier(team_id, tier.tier_id, tier.version)
            crash_at("tier_cache.filled")
            _FILLS.labels("tier", result.value).inc()
            if result is not TierFill.STALE:
                return tier
        raise ContendedError

    async def _fill_balance(self, team_id: str) -> bool:
        for _ in range(_MAX_READS):
            balance = await self._database.balance(team_id)
            if balance is None:
                _FILLS.labels("balance", "unknown_team").inc()
                return False
            settled = SettledBalance(floor_nano_usd(balance.balance_usd), balance.version)
            result = await self._scripts.fill_balance(team_id, settled)
            _FILLS.labels("balance", result.value).inc()
            if result is not BalanceFill.STALE:
                return True
        raise ContendedError

    async def _fill_day(self, team_id: str, day: Day) -> bool:
        # In this order: what settlement stores in between is known by its id.
        waiting = await self._waiting.of(team_id)
        shares = [share for record in waiting if (share := share_of(record, day)) is not None]
        used = await self._database.day(team_id, day, shares)
        if used is None:
            _FILLS.labels("day", "unknown_team").inc()
            return False
        filled = await self._scripts.fill_day(team_id, used)
        _FILLS.labels("day", "filled" if filled else "present").inc()
        return True

    async def _fill_spend(self, request: SpendFillRequest) -> bool:
        """Fill with what isn't settled too: it was spent, and only its charge is missing."""
        team_id, key_id = request.team_id, request.key_id
        period = Day(request.start_us, request.end_us)
        for _ in range(_MAX_READS):
            # In this order, as with days.
            waiting = await self._waiting.of(team_id)
            owed = [one for each in waiting if (one := owed_of(each, key_id, period)) is not None]
            spent = await self._database.spend(team_id, key_id, period, owed)
            if spent is None:
                _FILLS.labels("spend", "unknown_team").inc()
                return False
            amount_nano_usd = ceil_nano_usd(exact_sum(spent.settled_usd, spent.pending_usd))
            result = await self._scripts.fill_spend(
                team_id,
                Spend(key_id, period.start_us, period.end_us, amount_nano_usd, spent.version),
            )
            _FILLS.labels("spend", result.value).inc()
            if result is not SpendFill.STALE:
                return True
        raise ContendedError
