"""Spend when nobody settles: who has limits, what was settled, and which thresholds to tell."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncEngine

from contracts.spend import SpendLimit
from kit.money import ceil_nano_usd
from kit.postgres import one_statement_each
from settlement.domain.reconciling import SettledSpend
from settlement.domain.spending import Crossing, Period, TeamLimits, crossings
from settlement.store import spending
from settlement.store.failures import named_failures
from tables import account

_MOST_TOLD = 100_000


class Looked(NamedTuple):
    """What was settled of the periods of which all is summed up, and which thresholds are new."""

    settled: Mapping[Period, SettledSpend]
    """In nano-USD, rounded up."""
    crossed: Sequence[Crossing]


class SpendBooks:
    """Reads what was settled of periods, and tells and sums up what no charge did."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._single = one_statement_each(engine)
        # So that a threshold that was told long ago costs no transaction at each look.
        self._told: set[str] = set()

    async def limited(
        self, team_ids: Sequence[str]
    ) -> Mapping[str, tuple[TeamLimits, Sequence[str]]]:
        """Return of the teams that have limits of spend those limits, and the teams' keys.

        Raises:
            StoreUnavailableError: no answer.

        """
        with named_failures():
            async with self._single.connect() as connection:
                limits = await spending.limits_of(connection, team_ids)
                keys = await spending.keys_of(connection, limits) if limits else {}
        return {team_id: (each, keys.get(team_id, ())) for team_id, each in limits.items()}

    async def look(self, limits: Mapping[Period, SpendLimit]) -> Looked:
        """Look at these periods, and owe the thresholds that are reached and weren't told.

        Charges tell their thresholds themselves. What remains are those of a limit that came, or
        became lower, when so much was spent already. Of a period whose charges are too many to be
        summed up at once a part is summed up, so that it won't be behind for ever.

        Raises:
            StoreUnavailableError: no answer.

        """
        with named_failures():
            async with self._single.connect() as connection:
                found = await spending.states(connection, list(limits))
            behind = [spent.period for spent, _ in found if not spent.is_current]
            if behind:
                await self._advance(behind)
            crossed = await self._tell(
                [each for spent, _ in found for each in crossings(spent, limits[spent.period])]
            )
        settled = {
            spent.period: SettledSpend(ceil_nano_usd(spent.amount_usd), spent.version, has_pending)
            for spent, has_pending in found
            if spent.is_current
        }
        return Looked(settled, crossed)

    async def _tell(self, reached: Sequence[Crossing]) -> Sequence[Crossing]:
        """Owe what nobody has told before, in whatever process; return that."""
        new = [each for each in reached if each.message_id not in self._told]
        if not new:
            return ()
        async with self._engine.begin() as connection:
            crossed = await spending.cross(connection, new)
        if len(self._told) > _MOST_TOLD:
            self._told.clear()
        self._told.update(each.message_id for each in new)
        return crossed

    async def forget(self, keep_days: int) -> int:
        """Remove some of the rows of periods that ended so many days ago; return how many.

        Raises:
            StoreUnavailableError: no answer.

        """
        with named_failures():
            async with self._single.connect() as connection:
                return await spending.forget(connection, keep_days)

    async def _advance(self, periods: Sequence[Period]) -> None:
        async with self._engine.begin() as connection:
            teams = sorted({period.team_id for period in periods})
            held = {one.team_id for one in await account.lock_accounts(connection, teams)}
            await spending.advance(connection, [one for one in periods if one.team_id in held])
