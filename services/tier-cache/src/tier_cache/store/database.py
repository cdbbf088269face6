"""The database as tier-cache sees it: a few lookups, read only, through a bounded pool."""

import contextlib
import time
from collections.abc import Sequence
from typing import Any

import msgspec
from prometheus_client import Gauge, Histogram
from sqlalchemy import Executable, Row
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlmodel import col

from contracts.admission import Policy
from contracts.cache import KeyFacts
from contracts.usage import Price
from kit.metrics import LATENCY_BUCKETS_S
from kit.postgres import CONNECTION_ERRORS, one_statement_each
from redis_scripts import DayUsage
from tables import Account, ApiKey, Team
from tier_cache.domain.days import Day, Share
from tier_cache.domain.facts import PeriodSpend, TeamBalance, TeamTier
from tier_cache.domain.spends import Owed
from tier_cache.errors import DatabaseUnavailableError, ImpossibleLimitsError
from tier_cache.store import rows

# A Redis script counts in doubles, exact up to here; only absurd records come near.
_MOST_TOKENS = 2**53 - 1

_CONNECTION_WAIT = Histogram(
    "quotagate_tier_cache_connection_wait_seconds",
    "Seconds a lookup waited for a connection to Postgres.",
    buckets=LATENCY_BUCKETS_S,
)
_LOOKUPS_WAITING = Gauge(
    "quotagate_tier_cache_lookups_waiting", "Lookups that wait for a connection to Postgres."
)


class Database:
    """Lookups. Every method raises DatabaseUnavailableError when there is no answer in time."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = one_statement_each(engine)

    async def key(self, key_id: str) -> KeyFacts | None:
        """Return a key's facts; None: no such key, or its team is deleted.

        Raises:
            ImpossibleLimitsError: nobody could judge by the key's own limits.

        """
        found = await self._rows(rows.KEYS.where(col(ApiKey.key_id) == key_id))
        try:
            return rows.key_facts(found[0]) if found else None
        except msgspec.ValidationError as error:
            raise ImpossibleLimitsError(f"key {key_id}: limits: {error}") from error

    async def tier(self, team_id: str) -> TeamTier | None:
        """Return a team's tier; None: no such team, or it is deleted."""
        found = await self._rows(rows.TEAM_TIERS.where(col(Team.team_id) == team_id))
        return TeamTier(found[0].tier_id, found[0].tier_version) if found else None

    async def balance(self, team_id: str) -> TeamBalance | None:
        """Return a team's settled balance; None: no such account, or the team is deleted."""
        found = await self._rows(rows.TEAM_BALANCES.where(col(Account.team_id) == team_id))
        return TeamBalance(found[0].balance_usd, found[0].version) if found else None

    async def day(self, team_id: str, day: Day, waiting: Sequence[Share]) -> DayUsage | None:
        """Return what a team used on a day; None: no such team, or it is deleted.

        Every record that is stored counts, settled or not, and of those that wait elsewhere each
        that isn't stored.
        """
        found = await self._rows(rows.day_usage(team_id, day, waiting))
        if not found:
            return None
        tokens = min(int(found[0].tokens), _MOST_TOKENS)
        return DayUsage(day.start_us, day.end_us, int(found[0].requests), tokens)

    async def spend(
        self, team_id: str, key_id: str | None, period: Day, waiting: Sequence[Owed]
    ) -> PeriodSpend | None:
        """Return what a team, or a key of it, spent in a period; None: no such team.

        What is pending counts, and of the records that wait elsewhere each that isn't stored.
        """
        found = await self._rows(rows.spend_of(team_id, key_id, period, waiting))
        if not found:
            return None
        return PeriodSpend(found[0].settled_usd, found[0].pending_usd, found[0].account_version)

    async def policies(self) -> tuple[tuple[Policy, ...], dict[str, str]]:
        """Return every tier's policy, and by id why each other tier can't have one."""
        policies: list[Policy] = []
        impossible: dict[str, str] = {}
        for row in await self._rows(rows.TIERS):
            try:
                policies.append(rows.policy(row))
            except msgspec.ValidationError as error:
                impossible[row.tier_id] = str(error)
        return tuple(policies), impossible

    async def prices(self) -> tuple[Price, ...]:
        """Return for each provider and model the versions in effect and those to come."""
        return tuple(rows.price(row) for row in await self._rows(rows.CURRENT_PRICES))

    async def _rows(self, statement: Executable) -> Sequence[Row[Any]]:
        started_s = time.perf_counter()
        try:
            async with contextlib.AsyncExitStack() as stack:
                with _LOOKUPS_WAITING.track_inprogress():
                    connection = await stack.enter_async_context(self._engine.connect())
                _CONNECTION_WAIT.observe(time.perf_counter() - started_s)
                found: Sequence[Row[Any]] = (await connection.execute(statement)).all()
        except (SQLAlchemyError, *CONNECTION_ERRORS) as error:
            raise DatabaseUnavailableError(type(error).__name__) from error
        return found
