"""Charging accounts in Postgres: one transaction per group of accounts, each held while charged."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from contracts.usage import Usage
from kit.money import floor_nano_usd
from kit.postgres import one_statement_each
from settlement.domain.classification import HeldReason
from settlement.domain.reconciling import AccountState
from settlement.domain.settling import AccountBatch, PendingRecord, Prices
from settlement.domain.spending import Ended, SettledSpend
from settlement.errors import RowRefusedError
from settlement.store.failures import named_failures
from settlement.store.prices import PriceBook
from settlement.store.spending import settle_spend
from settlement.store.statements import statement
from tables import account
from tables.account import Posting
from tables.ledger import Reason

_PENDING = statement("pending_records")
_INSERT_CHARGES = statement("insert_charges")
_MARK_SETTLED = statement("mark_settled")
_HOLD = statement("hold_records")
_EXISTING = statement("existing_accounts")
_STATES = statement("account_states")
_HOLD_TEAMLESS = statement("hold_teamless_records")
_KEEP_PLANS = text("SET LOCAL plan_cache_mode = auto")
_PLAN_AS_BEFORE = text("SET LOCAL plan_cache_mode TO DEFAULT")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class SettledAccount:
    """An account after a batch: its balance and version as of our commit."""

    team_id: str
    balance_usd: Decimal
    version: int


class AccountStore:
    """The accounts, their ledger and their charges."""

    def __init__(self, engine: AsyncEngine, prices: PriceBook) -> None:
        self._engine = engine
        self._single = one_statement_each(engine)
        self._prices = prices

    @asynccontextmanager
    async def charging(self) -> AsyncIterator["Charging"]:
        """Open a transaction that commits at the end of the block.

        Raises:
            StoreConflictError, RowRefusedError: nothing was written.
            StoreUnavailableError: no answer; if it was the commit's, asking for what is pending
                finds out.

        """
        with named_failures():
            async with self._engine.begin() as connection:
                yield Charging(connection, self._prices)

    async def hold_teamless(self, team_ids: Sequence[str]) -> int:
        """Hold the pending records of those teams that have no account; return how many.

        Raises:
            StoreUnavailableError: no answer.

        """
        with named_failures():
            async with self._single.connect() as connection:
                result = await connection.execute(
                    _HOLD_TEAMLESS,
                    {"team_ids": list(team_ids), "reason": HeldReason.UNKNOWN_TEAM.value},
                )
                return result.rowcount

    async def existing(self, team_ids: Sequence[str]) -> set[str]:
        """Return which of the teams have an account.

        Raises:
            StoreUnavailableError: no answer.

        """
        with named_failures():
            async with self._single.connect() as connection:
                rows = await connection.execute(_EXISTING, {"team_ids": list(team_ids)})
                return set(rows.scalars())

    async def states(self, team_ids: Sequence[str]) -> dict[str, AccountState]:
        """Return the settled balances by team, rounded down to nano-USD.

        A team without an account is missing.

        Raises:
            StoreUnavailableError: no answer.

        """
        with named_failures():
            async with self._single.connect() as connection:
                rows = await connection.execute(_STATES, {"team_ids": list(team_ids)})
                return {
                    row.team_id: AccountState(
                        floor_nano_usd(row.balance_usd), row.version, row.has_pending
                    )
                    for row in rows
                }


class Charging:
    """One transaction that charges some accounts."""

    def __init__(self, connection: AsyncConnection, prices: PriceBook) -> None:
        self._connection = connection
        self._prices = prices

    async def lock(self, team_ids: Sequence[str]) -> list[str]:
        """Hold those of the accounts that nobody else holds; return their teams in id order."""
        locked = await account.lock_accounts(self._connection, team_ids)
        return [held.team_id for held in locked]

    async def pending(self, team_ids: Sequence[str], records: int) -> list[PendingRecord]:
        """Return the oldest pending records of teams whose accounts are held, at most `records`.

        One team's after the other's: only the team of the last one may have more.
        """
        rows = await self._connection.execute(
            _PENDING, {"team_ids": list(team_ids), "records": records}
        )
        return [
            PendingRecord(
                row.record_id,
                row.team_id,
                row.price_id,
                Usage(
                    input=row.input_tokens,
                    cache_read=row.cache_read_tokens,
                    cache_write_5m=row.cache_write_5m_tokens,
                    cache_write_1h=row.cache_write_1h_tokens,
                    output=row.output_tokens,
                    reasoning=row.reasoning_tokens,
                ),
                row.api_key_id,
                (row.ended_at - _EPOCH) // _MICROSECOND,
            )
            for row in rows
        ]

    async def prices(self, records: Sequence[PendingRecord]) -> Prices:
        """Return the prices that the records pinned; one that doesn't exist is missing."""
        pinned = {record.price_id for record in records if record.price_id is not None}
        return await self._prices.of(self._connection, pinned)

    async def post(self, batches: Sequence[AccountBatch]) -> list[SettledAccount]:
        """Debit the accounts, store the charges, and mark the records; true with the commit.

        Returns the accounts that were debited: a batch that comes to nothing debits none.
        """
        owing = [batch for batch in batches if batch.total_usd > 0]
        async with self._kept_plans():
            entries = await account.debit_usage(
                self._connection, [_posting(batch) for batch in owing]
            )
            entry_ids = {entry.team_id: entry.entry_id for entry in entries}
            await self._store_charges(batches, entry_ids)
        await self._mark_settled(batches)
        await self._hold(batches)
        return [
            SettledAccount(entry.team_id, entry.balance_after_usd, entry.account_version)
            for entry in entries
        ]

    async def spend(
        self, records: Sequence[PendingRecord], accounts: Sequence[SettledAccount]
    ) -> SettledSpend:
        """Sum up what was spent in the periods of these records that have a limit.

        Of accounts that were debited: nothing was spent otherwise. Thresholds that were crossed are
        told with the commit.
        """
        debited = {account.team_id for account in accounts}
        ended = {
            Ended(record.team_id, record.key_id, record.ended_at_us)
            for record in records
            if record.team_id in debited
        }
        return await settle_spend(self._connection, list(ended)) if ended else SettledSpend()

    @asynccontextmanager
    async def _kept_plans(self) -> AsyncIterator[None]:
        """Let what runs for each row keep its plans, as nothing else of ours does.

        Foreign keys and the functions of the account look up unique keys, so no plan that was
        made for an empty table can be wrong later. Planned anew for each charge, these look-ups
        took three quarters of its insert.
        """
        await self._connection.execute(_KEEP_PLANS)
        yield
        await self._connection.execute(_PLAN_AS_BEFORE)

    async def _store_charges(
        self, batches: Sequence[AccountBatch], entry_ids: dict[str, int]
    ) -> None:
        charges = [(batch.team_id, charge) for batch in batches for charge in batch.charges]
        if not charges:
            return
        await self._connection.execute(
            _INSERT_CHARGES,
            {
                "record_id": [charge.record_id for _, charge in charges],
                "team_id": [team_id for team_id, _ in charges],
                "price_id": [charge.price_id for _, charge in charges],
                "amount_usd": [charge.amount_usd for _, charge in charges],
                # A charge of zero may stand alone: where nothing is owed there is no entry.
                "ledger_entry_id": [entry_ids.get(team_id) for team_id, _ in charges],
            },
        )

    async def _mark_settled(self, batches: Sequence[AccountBatch]) -> None:
        charged = [charge.record_id for batch in batches for charge in batch.charges]
        if not charged:
            return
        marked = await self._connection.execute(_MARK_SETTLED, {"record_ids": charged})
        if marked.rowcount != len(charged):
            raise RowRefusedError("a record that was pending is not pending any more")

    async def _hold(self, batches: Sequence[AccountBatch]) -> None:
        held = [item for batch in batches for item in batch.held.items()]
        if held:
            await self._connection.execute(
                _HOLD,
                {
                    "record_ids": [record_id for record_id, _ in held],
                    "reasons": [reason.value for _, reason in held],
                },
            )


def _posting(batch: AccountBatch) -> Posting:
    first, last = batch.charges[0].record_id, batch.charges[-1].record_id
    return Posting(
        team_id=batch.team_id,
        amount_usd=batch.total_usd,
        reason=Reason.USAGE,
        reference=f"records:{first}-{last}",
        note=f"{len(batch.charges)} usage charges",
    )
