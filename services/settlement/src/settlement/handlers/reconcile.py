"""Reconcile: cached balances that nobody settles are compared with the settled ones.

Without traffic no settlement comes by that could mend a cached balance; see domain/reconciling.
"""

from dataclasses import dataclass

from kit import log
from redis_scripts import BalanceRefresh, BalanceRepair, SettledBalance
from settlement.domain.reconciling import AccountState, CachedBalance, Step, next_step
from settlement.handlers.metrics import DRIFT, REPAIRS
from settlement.handlers.reconcile_spend import ReconcileSpend
from settlement.store.accounts import AccountStore
from settlement.store.balances import BalanceCache
from settlement.store.record_stream import RecordStream

_logger = log.get(__name__)


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A cached balance that differed, and how far the stream went at that time."""

    cached: CachedBalance
    published: int


class Reconcile:
    """Looks at every cached balance. Replicas may do so side by side: repairs are conditional."""

    def __init__(
        self,
        balances: BalanceCache,
        accounts: AccountStore,
        stream: RecordStream,
        spend: ReconcileSpend | None = None,
    ) -> None:
        """`spend` looks at the same teams' spend; None: nobody does."""
        self._spend = spend
        self._balances = balances
        self._accounts = accounts
        self._stream = stream
        self._sightings: dict[str, _Sighting] = {}

    async def tick(self) -> None:
        """Look once at all of them.

        Raises:
            SettlementError: a store didn't answer; what was not looked at is next time.

        """
        # The extent first: what is published in between must not count as consumed.
        last = (await self._stream.extent()).last
        progress = await self._stream.progress()
        consumed_through = last if progress.is_done else progress.floor
        sightings: dict[str, _Sighting] = {}
        async for chunk in self._balances.all():
            accounts = await self._accounts.states([cached.team_id for cached in chunk])
            # After the balances were read: a debit that shows in them may be published only now.
            published = (await self._stream.extent()).last
            for cached in chunk:
                account = accounts.get(cached.team_id)
                if account is not None:
                    sighting = _Sighting(cached, published)
                    kept = await self._look(sighting, account, consumed_through)
                    if kept is not None:
                        sightings[cached.team_id] = kept
            if self._spend is not None:
                await self._spend.look([cached.team_id for cached in chunk], consumed_through)
        self._sightings = sightings

    async def _look(
        self, sighting: _Sighting, account: AccountState, consumed_through: int
    ) -> _Sighting | None:
        """Do what is to be done about one team; return the sighting to remember."""
        cached = sighting.cached
        before = self._sightings.get(cached.team_id)
        usable = before is not None and before.published <= consumed_through
        step = next_step(cached, account, before.cached if before and usable else None)
        match step:
            case Step.NOTHING:
                return None
            case Step.LOOK_AGAIN:
                unchanged = before is not None and before.cached == cached
                return before if unchanged else sighting
            case Step.AHEAD:
                REPAIRS.labels("ahead").inc()
                _logger.error(
                    "cached balance is of a version the account never had",
                    team_id=cached.team_id,
                    cached_version=cached.version,
                    version=account.version,
                )
            case Step.REFRESH | Step.REPAIR:
                await self._mend(step, cached, account)
        return None

    async def _mend(self, step: Step, cached: CachedBalance, account: AccountState) -> None:
        settled = SettledBalance(account.balance_nano_usd, account.version)
        result: BalanceRefresh | BalanceRepair
        if step is Step.REPAIR:
            result = await self._balances.repair(cached.team_id, cached.balance_nano_usd, settled)
        else:
            result = await self._balances.refresh(cached.team_id, settled)
        REPAIRS.labels(result.value).inc()
        if result.value == BalanceRepair.APPLIED.value:
            drift_nano_usd = account.balance_nano_usd - cached.balance_nano_usd
            DRIFT.observe(abs(drift_nano_usd))
            _logger.warning(
                "balance repaired",
                team_id=cached.team_id,
                drift_nano_usd=drift_nano_usd,
                version=account.version,
            )
