"""What is looked at of spend when nobody settles: who has limits, and what was settled."""

from collections.abc import Mapping, Sequence

from sqlalchemy.ext.asyncio import AsyncEngine

from kit.money import ceil_nano_usd
from settlement.domain.reconciling import SettledSpend
from settlement.domain.spending import Period, TeamLimits
from settlement.store import spending
from settlement.store.failures import named_failures
from tables import account


class SpendBooks:
    """Reads what was settled of periods, and sums up what was too much to be read at once."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def limited(
        self, team_ids: Sequence[str]
    ) -> Mapping[str, tuple[TeamLimits, Sequence[str]]]:
        """Return of the teams that have limits of spend those limits, and the teams' keys.

        Raises:
            StoreUnavailableError: no answer.

        """
        with named_failures():
            async with self._engine.connect() as connection:
                limits = await spending.limits_of(connection, team_ids)
                keys = await spending.keys_of(connection, limits) if limits else {}
        return {team_id: (each, keys.get(team_id, ())) for team_id, each in limits.items()}

    async def settled(self, periods: Sequence[Period]) -> dict[Period, SettledSpend]:
        """Return what was settled of these periods, rounded up to nano-USD.

        One whose charges are too many to be summed up at once is missing; a part of them is summed
        up, so that it won't be for ever.

        Raises:
            StoreUnavailableError: no answer.

        """
        with named_failures():
            async with self._engine.connect() as connection:
                found = await spending.states(connection, periods)
            behind = [spent.period for spent, _ in found if not spent.is_current]
            if behind:
                await self._advance(behind)
        return {
            spent.period: SettledSpend(ceil_nano_usd(spent.amount_usd), spent.version, has_pending)
            for spent, has_pending in found
            if spent.is_current
        }

    async def _advance(self, periods: Sequence[Period]) -> None:
        async with self._engine.begin() as connection:
            teams = sorted({period.team_id for period in periods})
            held = {one.team_id for one in await account.lock_accounts(connection, teams)}
            await spending.advance(connection, [one for one in periods if one.team_id in held])
