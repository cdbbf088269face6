"""Reconcile spend: what is counted of teams that nobody settles is compared with what was settled.

A rough debit whose record never came would keep a team from what it may still spend, until the
period ends. As with balances, spend is mended that hasn't moved since the last look, when all that
had been published by then is settled. Thresholds that a lower limit has reached are told.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contracts.spend import SpendLimit
from kit import log
from kit.calendar import CalendarError
from kit.clock import Clock
from settlement.domain.reconciling import CountedSpend, SettledSpend, Step, next_spend_step
from settlement.domain.spending import Period, TeamLimits, current_periods
from settlement.handlers.metrics import SPEND_REPAIRS, count_crossed
from settlement.store.balances import BalanceCache
from settlement.store.record_stream import RecordStream
from settlement.store.spend_books import SpendBooks

_logger = log.get(__name__)


@dataclass(frozen=True, slots=True)
class _Sighting:
    """Counted spend that differed, and how far the stream went at that time."""

    counted: CountedSpend
    published: int


class ReconcileSpend:
    """Looks at the current periods of teams with limits. Replicas may do so side by side."""

    def __init__(
        self, balances: BalanceCache, books: SpendBooks, stream: RecordStream, clock: Clock
    ) -> None:
        self._balances = balances
        self._books = books
        self._stream = stream
        self._clock = clock
        self._sightings: dict[Period, _Sighting] = {}

    async def look(self, team_ids: Sequence[str], consumed_through: int) -> None:
        """Look at these teams; all that was published until `consumed_through` is stored.

        Raises:
            SettlementError: a store didn't answer; what was not looked at is next time.

        """
        limits = self._current(await self._books.limited(team_ids))
        if not limits:
            return
        counted = await self._balances.counted_spend(list(limits))
        # What isn't counted is looked at too, so that a long history is summed up before it is.
        settled, crossed = await self._books.look(limits)
        count_crossed(crossed)
        # After the counters were read: a debit that shows in them may be published only now.
        published = (await self._stream.extent()).last
        for period in limits:
            seen, known = counted.get(period), settled.get(period)
            before = self._sightings.pop(period, None)
            if seen is None or known is None:
                continue
            usable = before is not None and before.published <= consumed_through
            step = next_spend_step(seen, known, before.counted if before and usable else None)
            if step is Step.LOOK_AGAIN:
                unchanged = before is not None and before.counted == seen
                kept = before if before and unchanged else _Sighting(seen, published)
                self._sightings[period] = kept
            elif step is not Step.NOTHING:
                await self._mend(step, period, (seen, known))

    def _current(
        self, teams: Mapping[str, tuple[TeamLimits, Sequence[str]]]
    ) -> dict[Period, SpendLimit]:
        now_us = self._clock.now_us()
        found: dict[Period, SpendLimit] = {}
        for team_id, (limits, key_ids) in teams.items():
            try:
                found |= current_periods(team_id, limits, key_ids, now_us)
            except CalendarError as error:
                _logger.warning("spend not compared", team_id=team_id, detail=str(error))
        return found

    async def _mend(
        self, step: Step, period: Period, differing: tuple[CountedSpend, SettledSpend]
    ) -> None:
        counted, settled = differing
        if step is Step.AHEAD:
            SPEND_REPAIRS.labels("ahead").inc()
            _logger.error(
                "counted spend is of a version the account never had",
                team_id=period.team_id,
                counted_version=counted.version,
                version=settled.version,
            )
            return
        result = await self._balances.repair_spend(period, counted, settled)
        SPEND_REPAIRS.labels(result.value).inc()
        _logger.warning(
            "spend repaired",
            team_id=period.team_id,
            key_id=period.key_id,
            drift_nano_usd=settled.amount_nano_usd - counted.amount_nano_usd,
            result=result.value,
        )
