"""Settle: pending records become charges, account by account, and the cache hears of it.

One transaction charges a group of accounts, because a commit costs as much as charging many
records. A group that fails is settled account by account, so that one broken account stops nobody
else.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from kit import log
from kit.crashpoint import crash_at
from kit.money import floor_nano_usd
from redis_scripts import SettledBalance
from settlement.domain.settling import AccountBatch, account_batches
from settlement.domain.spending import SettledSpend, Spent
from settlement.errors import (
    CacheUnavailableError,
    StoreConflictError,
    StoreUnavailableError,
)
from settlement.handlers.backlog import Backlog
from settlement.handlers.metrics import (
    FAILURES,
    HELD,
    REFRESHES,
    SETTLED,
    SPEND_REFRESHES,
    count_crossed,
)
from settlement.handlers.pace import pause
from settlement.settings import Settings
from settlement.store.accounts import AccountStore, SettledAccount
from settlement.store.balances import BalanceCache
from settlement.store.records import RecordStore

_LOOP = "settle"
_CONFLICT_TRIES = 5
_CONFLICT_PAUSE_S = 0.02
# How long an account that can't be settled is left out; only a person can mend it.
_LEFT_OUT_S = 30.0

_logger = log.get(__name__)


@dataclass(frozen=True, slots=True)
class _Done:
    """What one transaction came to."""

    batches: Sequence[AccountBatch] = ()
    accounts: Sequence[SettledAccount] = ()
    spend: SettledSpend = field(default_factory=SettledSpend)
    reached: str | None = None
    """The last team that was charged, when there was more than one transaction may hold."""
    unfinished: str | None = None
    """The team whose next pending record is the first that found no room."""


class Settle:
    """Charges what is pending, whenever records were stored and each `settle_interval_s`."""

    def __init__(
        self,
        records: RecordStore,
        accounts: AccountStore,
        balances: BalanceCache,
        backlog: Backlog,
        settings: Settings,
    ) -> None:
        self._records = records
        self._accounts = accounts
        self._balances = balances
        self._backlog = backlog
        self._settings = settings
        self._left_out_until_s: dict[str, float] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Go round all teams until told to stop; the transaction under way is finished first."""
        while not stop.is_set():
            self._backlog.stored.clear()
            if not await self.once_around(stop):
                await pause(self._settings.settle_interval_s, self._backlog.stored, stop)

    async def once_around(self, stop: asyncio.Event) -> bool:
        """Charge up to one batch of every team that waits; return whether there may be more.

        Accounts that another replica holds, and those that are left out, have their turn later.
        """
        after, more = "", False
        while not stop.is_set():
            try:
                teams = await self._records.teams_with_pending(
                    after, self._settings.settle_batch_accounts
                )
                if not teams:
                    break
                able = self._without_left_out(teams)
                done = await self._settle_each(able) if able else _Done()
                more = more or done.unfinished is not None
                if done.reached is None and len(teams) < self._settings.settle_batch_accounts:
                    break
                after = done.reached or teams[-1]
            except StoreUnavailableError as error:
                FAILURES.labels(_LOOP).inc()
                _logger.warning("settling waits", detail=str(error))
                return False
        return more

    async def _settle_each(self, teams: Sequence[str]) -> _Done:
        """Settle a group together, or, whatever goes wrong with that, one by one.

        Raises:
            StoreUnavailableError: nobody's turn would end better now.

        """
        try:
            return await self._settle(teams)
        except StoreUnavailableError:
            raise
        except Exception:  # the outermost loop: what is wrong with one team is not with another
            FAILURES.labels(_LOOP).inc()
            _logger.exception("settling failed", teams=len(teams), first_team_id=teams[0])
        if len(teams) == 1:
            self._left_out_until_s[teams[0]] = _now_s() + _LEFT_OUT_S
            return _Done()
        alone = [await self._settle_each([team_id]) for team_id in teams]
        return _Done(
            [batch for done in alone for batch in done.batches],
            unfinished=next((done.unfinished for done in alone if done.unfinished), None),
        )

    async def _settle(self, teams: Sequence[str]) -> _Done:
        """Settle a group in one transaction, then refresh its cached balances."""
        done = await self._charge_stubbornly(teams)
        crash_at("settlement.committed")
        _count(done.batches)
        if self._backlog.traces is not None:
            self._backlog.traces.settled(done.batches)
        count_crossed(done.spend.crossed)
        if self._backlog.unread <= self._settings.consume_batch_records:
            complete = [a for a in done.accounts if a.team_id != done.unfinished]
            await asyncio.gather(*(self._refresh(account) for account in complete))
            spent = [s for s in done.spend.spent if s.period.team_id != done.unfinished]
            await asyncio.gather(*(self._refresh_spend(each) for each in spent))
            crash_at("settlement.refreshed")
        return done

    async def _charge_stubbornly(self, teams: Sequence[str]) -> _Done:
        """Charge a group, again if it lost against another transaction, but not for ever."""
        for tries in range(1, _CONFLICT_TRIES):
            try:
                return await self._charge(teams)
            except StoreConflictError:
                # S311: jitter only, no secret.
                await asyncio.sleep(random.uniform(0, _CONFLICT_PAUSE_S * 2**tries))  # noqa: S311
        return await self._charge(teams)

    async def _charge(self, teams: Sequence[str]) -> _Done:
        limit = self._settings.settle_batch_records
        async with self._accounts.charging() as charging:
            locked = await charging.lock(teams)
            # One more than there is room for tells whether that is all.
            found = await charging.pending(locked, limit + 1) if locked else []
            pending, more = found[:limit], found[limit:]
            batches = account_batches(pending, await charging.prices(pending)) if pending else []
            accounts = await charging.post(batches) if batches else []
            spend = await charging.spend(pending, accounts) if accounts else SettledSpend()
            crash_at("settlement.charged")
        if len(locked) < len(teams):
            await self._hold_teamless(set(teams).difference(locked))
        if not more:
            return _Done(batches, accounts, spend)
        return _Done(batches, accounts, spend, pending[-1].team_id, more[0].team_id)

    async def _hold_teamless(self, teams: set[str]) -> None:
        """Hold the records of those teams that have no account; the others are just busy."""
        teamless = teams - await self._accounts.existing(sorted(teams))
        if not teamless:
            return
        held = await self._accounts.hold_teamless(sorted(teamless))
        HELD.labels("unknown_team").inc(held)
        _logger.error("records held", reason="unknown_team", teams=sorted(teamless), records=held)

    async def _refresh(self, account: SettledAccount) -> None:
        """Tell the cache the settled balance. It need not listen: a settlement stays settled."""
        settled = SettledBalance(floor_nano_usd(account.balance_usd), account.version)
        try:
            result = (await self._balances.refresh(account.team_id, settled)).value
        except CacheUnavailableError as error:
            result = "failed"
            _logger.warning("balance not refreshed", team_id=account.team_id, detail=str(error))
        REFRESHES.labels(result).inc()

    async def _refresh_spend(self, spent: Spent) -> None:
        """Tell the cache what was settled of a period, likewise."""
        if not spent.is_current:
            return
        try:
            result = (await self._balances.refresh_spend(spent)).value
        except CacheUnavailableError as error:
            result = "failed"
            team_id = spent.period.team_id
            _logger.warning("spend not refreshed", team_id=team_id, detail=str(error))
        SPEND_REFRESHES.labels(result).inc()

    def _without_left_out(self, teams: Sequence[str]) -> list[str]:
        now_s = _now_s()
        for team_id, until_s in list(self._left_out_until_s.items()):
            if until_s <= now_s:
                del self._left_out_until_s[team_id]
        return [team_id for team_id in teams if team_id not in self._left_out_until_s]


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _count(batches: Sequence[AccountBatch]) -> None:
    SETTLED.inc(sum(len(batch.charges) for batch in batches))
    for batch in batches:
        for record_id, reason in batch.held.items():
            HELD.labels(reason.value).inc()
            _logger.error(
                "record held", reason=reason.value, team_id=batch.team_id, record_id=record_id
            )
