"""Cached balances and counted spend in Redis: refreshed under fences, compared, repaired."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisClusterException, RedisError

from kit.money import ceil_nano_usd
from kit.redis import RedisClient
from redis_scripts import (
    BalanceRefresh,
    BalanceRepair,
    RedisScripts,
    RedisScriptsError,
    SettledBalance,
    Spend,
    SpendRefresh,
    SpendRepair,
)
from redis_scripts import CountedSpend as ReadSpend
from redis_scripts.keys import (
    BALANCE_PATTERN,
    spend_counter,
    team_keys,
    team_of_balance_key,
    version_of,
)
from settlement.domain.reconciling import CachedBalance, CountedSpend, SettledSpend
from settlement.domain.spending import Period, Spent
from settlement.errors import CacheUnavailableError

# Keys that the server looks at for one answer; it answers other calls in between.
_SCAN_KEYS = 500
# The last is uvloop's, for writing to a connection that the server has reset at that moment.
_CLIENT_ERRORS = (RedisError, RedisClusterException, OSError, RuntimeError)


class BalanceCache:
    """Every team's cached balance and counted spend. Amounts are integer nano-USD."""

    def __init__(self, client: RedisClient, scripts: RedisScripts) -> None:
        self._client = client
        self._scripts = scripts

    async def refresh(self, team_id: str, settled: SettledBalance) -> BalanceRefresh:
        """Set the balance to a settled one unless a newer version is known.

        Raises:
            CacheUnavailableError: set or not.

        """
        try:
            return await self._scripts.refresh_balance(team_id, settled)
        except RedisScriptsError as error:
            raise CacheUnavailableError(type(error).__name__) from error

    async def repair(
        self, team_id: str, expected_nano_usd: int, settled: SettledBalance
    ) -> BalanceRepair:
        """Set the balance to a settled one of the same version, unless it moved since it was read.

        Raises:
            CacheUnavailableError: set or not.

        """
        try:
            return await self._scripts.repair_balance(team_id, expected_nano_usd, settled)
        except RedisScriptsError as error:
            raise CacheUnavailableError(type(error).__name__) from error

    async def refresh_spend(self, spent: Spent) -> SpendRefresh:
        """Count what was settled of a period, rounded up, unless a newer version is known.

        Raises:
            CacheUnavailableError: set or not.

        """
        try:
            return await self._scripts.refresh_spend(spent.period.team_id, as_counted(spent))
        except RedisScriptsError as error:
            raise CacheUnavailableError(type(error).__name__) from error

    async def counted_spend(self, periods: Sequence[Period]) -> dict[Period, CountedSpend]:
        """Return what is counted as spent in these periods; one that isn't counted is missing.

        Raises:
            CacheUnavailableError: Redis doesn't answer.

        """
        try:
            pipeline = self._pipeline()
            for period in periods:
                place = spend_counter(period.starts_at_us, period.ends_at_us, period.key_id)
                names = (each.of(period.team_id) for each in (place, version_of(place)))
                pipeline.execute_command("MGET", *names)
            answers = await pipeline.execute()
        except _CLIENT_ERRORS as error:
            raise CacheUnavailableError(f"redis: {type(error).__name__}") from error
        return {
            period: CountedSpend(int(spent), int(version))
            for period, (spent, version) in zip(periods, answers, strict=True)
            if spent is not None and version is not None
        }

    async def repair_spend(
        self, period: Period, counted: CountedSpend, settled: SettledSpend
    ) -> SpendRepair:
        """Count what was settled of a period, unless what is counted moved since it was read.

        Raises:
            CacheUnavailableError: set or not.

        """
        wanted = Spend(
            period.key_id,
            period.starts_at_us,
            period.ends_at_us,
            settled.amount_nano_usd,
            settled.version,
        )
        read = ReadSpend(counted.amount_nano_usd, counted.version)
        try:
            return await self._scripts.repair_spend(period.team_id, read, wanted)
        except RedisScriptsError as error:
            raise CacheUnavailableError(type(error).__name__) from error

    async def all(self) -> AsyncIterator[list[CachedBalance]]:
        """Yield every cached balance, some hundred at a time. Extends no life.

        Balances are kept for an hour after the last call, so these are the teams that were active
        or refused lately.

        Raises:
            CacheUnavailableError: Redis doesn't answer.

        """
        teams: set[str] = set()
        try:
            async for key in self._client.scan_iter(match=BALANCE_PATTERN, count=_SCAN_KEYS):
                team_id = team_of_balance_key(key)
                if team_id is not None:
                    teams.add(team_id)
                if len(teams) >= _SCAN_KEYS:
                    yield await self._read(sorted(teams))
                    teams.clear()
            if teams:
                yield await self._read(sorted(teams))
        except _CLIENT_ERRORS as error:
            raise CacheUnavailableError(f"redis: {type(error).__name__}") from error

    def _pipeline(self) -> Any:  # noqa: ANN401 - a cluster's and a server's have no common type
        if isinstance(self._client, Redis):
            return self._client.pipeline(transaction=False)
        return self._client.pipeline()

    async def _read(self, team_ids: Sequence[str]) -> list[CachedBalance]:
        pipeline = self._pipeline()
        for team_id in team_ids:
            keys = team_keys(team_id)
            # One command, so that a balance and its version belong together; spelt out, because
            # a cluster's pipeline refuses its own method, fearing keys of several slots.
            pipeline.execute_command("MGET", keys.balance, keys.balance_version)
        found = []
        for team_id, (balance, version) in zip(team_ids, await pipeline.execute(), strict=True):
            if balance is not None:
                known = None if version is None else int(version)
                found.append(CachedBalance(team_id, int(balance), known))
        return found


def as_counted(spent: Spent) -> Spend:
    """Return settled spend as the cache counts it."""
    period = spent.period
    return Spend(
        period.key_id,
        period.starts_at_us,
        period.ends_at_us,
        ceil_nano_usd(spent.amount_usd),
        spent.version,
    )
