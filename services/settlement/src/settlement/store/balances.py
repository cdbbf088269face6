"""The account balance cache in Redis: refreshed under its fence, compared, repaired."""

from collections.abc import AsyncIterator, Sequence

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
)
from redis_scripts.keys import BALANCE_PATTERN, team_keys, team_of_balance_key
from settlement.domain.reconciling import CachedBalance
from settlement.domain.spending import Spent
from settlement.errors import CacheUnavailableError

# Keys that the server looks at for one answer; it answers other calls in between.
_SCAN_KEYS = 500
# The last is uvloop's, for writing to a connection that the server has reset at that moment.
_CLIENT_ERRORS = (RedisError, RedisClusterException, OSError, RuntimeError)


class BalanceCache:
    """Every team's cached balance. Amounts are integer nano-USD."""

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

    async def _read(self, team_ids: Sequence[str]) -> list[CachedBalance]:
        pipeline = (
            self._client.pipeline(transaction=False)
            if isinstance(self._client, Redis)
            else self._client.pipeline()
        )
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
