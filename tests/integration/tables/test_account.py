"""Credit and debit: exact, gapless under concurrency, and refused with a reason."""

import asyncio
import itertools
from collections.abc import Callable
from decimal import Decimal

import pytest
from integration.tables.conftest import Database
from integration.tables.rows import add_price, add_record, charge, open_team, pay_in, settle_one
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession

from kit.money import exact_sum
from tables.account import Entry, Posting, credit, debit, debit_usage, lock_accounts
from tables.errors import AmountError, TablesError, UnknownAccountError
from tables.ledger import Direction, Reason


async def _ledger(engine: AsyncEngine, team_id: str) -> list[tuple[str, Decimal, Decimal, int]]:
    async with engine.connect() as connection:
        rows = await connection.execute(
            text(
                "SELECT direction, amount_usd, balance_after_usd, account_version"
                " FROM ledger_entry WHERE team_id = :team ORDER BY account_version"
            ),
            {"team": team_id},
        )
        return [tuple(row) for row in rows]


async def _account(engine: AsyncEngine, team_id: str) -> tuple[Decimal, int]:
    async with engine.connect() as connection:
        row = (
            await connection.execute(
                text("SELECT balance_usd, version FROM account WHERE team_id = :team"),
                {"team": team_id},
            )
        ).one()
    return row.balance_usd, row.version


async def test_a_new_team_has_an_empty_account(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    assert await _account(database.tier_cache, team_id) == (Decimal(0), 0)


async def test_credit_returns_the_entry_that_it_wrote(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    posting = Posting(
        team_id=team_id,
        amount_usd=Decimal("12.345678901234567890123456789"),
        reason=Reason.CREDIT,
        reference="invoice 7",
        note="paid",
    )
    async with database.control_plane.begin() as connection:
        entry = await credit(connection, posting)
        stored = (
            await connection.execute(
                text("SELECT * FROM ledger_entry WHERE entry_id = :id"), {"id": entry.entry_id}
            )
        ).one()
    assert entry == Entry(**stored._mapping)
    assert (entry.direction, entry.account_version) == (Direction.CREDIT, 1)
    assert entry.balance_after_usd == posting.amount_usd
    assert await _account(database.settlement, team_id) == (posting.amount_usd, 1)


async def test_a_session_can_credit_too(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    async with AsyncSession(database.control_plane) as session:
        await credit(session, Posting(team_id=team_id, amount_usd=Decimal(1), reason=Reason.CREDIT))
        await session.commit()
    assert await _account(database.control_plane, team_id) == (Decimal(1), 1)


async def test_a_debit_may_go_below_zero(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    async with database.control_plane.begin() as connection:
        entry = await debit(
            connection, Posting(team_id=team_id, amount_usd=Decimal(3), reason=Reason.ADJUSTMENT)
        )
    assert entry.balance_after_usd == Decimal(-3)


async def test_rolled_back_is_as_if_never_done(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    async with database.control_plane.connect() as connection:
        await credit(
            connection, Posting(team_id=team_id, amount_usd=Decimal(5), reason=Reason.CREDIT)
        )
        await connection.rollback()
    assert await _account(database.control_plane, team_id) == (Decimal(0), 0)
    assert await _ledger(database.control_plane, team_id) == []


@pytest.mark.parametrize(
    ("amount_usd", "sql_amount"),
    [
        pytest.param(Decimal(0), "0", id="zero"),
        pytest.param(Decimal("-0.000000001"), "-0.000000001", id="negative"),
        pytest.param(Decimal("NaN"), "'NaN'", id="not a number"),
        pytest.param(Decimal("Infinity"), "'Infinity'", id="infinite"),
        pytest.param(Decimal("-Infinity"), "'-Infinity'", id="negative infinite"),
        pytest.param(None, "NULL", id="missing"),
    ],
)
async def test_an_impossible_amount_is_refused(
    database: Database, amount_usd: Decimal | None, sql_amount: str
) -> None:
    team_id = await open_team(database.control_plane)
    async with database.control_plane.connect() as connection:
        if amount_usd is not None:
            posting = Posting(team_id=team_id, amount_usd=amount_usd, reason=Reason.CREDIT)
            with pytest.raises(AmountError, match="finite"):
                await credit(connection, posting)
        # And by the database, whoever calls the function without Python's check before it.
        with pytest.raises(DBAPIError) as raised:
            await connection.execute(
                text(f"SELECT account_credit(:team, 'CREDIT', {sql_amount}, NULL, NULL)"),
                {"team": team_id},
            )
    assert getattr(raised.value.orig, "sqlstate", None) == "QG002"
    assert await _ledger(database.control_plane, team_id) == []


async def test_an_unknown_team_is_refused(database: Database) -> None:
    posting = Posting(team_id="nobody", amount_usd=Decimal(1), reason=Reason.ADJUSTMENT)
    for move in (credit, debit):
        async with database.control_plane.connect() as connection:
            with pytest.raises(UnknownAccountError) as raised:
                await move(connection, posting)
        assert isinstance(raised.value, TablesError)
        assert str(raised.value) == "There is no account of that team."


@pytest.mark.parametrize(
    ("move", "reason"),
    [
        pytest.param(credit, Reason.USAGE, id="a credit for usage"),
        pytest.param(debit, Reason.CREDIT, id="a debit for money paid in"),
    ],
)
async def test_a_reason_that_does_not_fit_is_a_programming_error(
    database: Database, move: Callable[..., object], reason: Reason
) -> None:
    posting = Posting(team_id="t", amount_usd=Decimal(1), reason=reason)
    async with database.control_plane.connect() as connection:
        with pytest.raises(ValueError, match="not a reason"):
            await move(connection, posting)  # type: ignore[misc] # both are coroutine functions


async def test_many_workers_on_one_account_leave_no_gap(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    price_id = await add_price(database.control_plane)
    credits_usd = [Decimal(n) / 7 for n in range(1, 26)]
    debits_usd = [Decimal(n) / 1_000_000_007 for n in range(1, 26)]
    entries = await asyncio.gather(
        *(pay_in(database.control_plane, team_id, str(amount)) for amount in credits_usd),
        *(settle_one(database.settlement, team_id, price_id, amount) for amount in debits_usd),
    )
    ledger = await _ledger(database.control_plane, team_id)
    assert [version for *_, version in ledger] == list(range(1, 51))
    assert sorted(entry.account_version for entry in entries) == list(range(1, 51))
    signed = [amount if way == "CREDIT" else amount.copy_negate() for way, amount, *_ in ledger]
    running = list(itertools.accumulate(signed, exact_sum))
    assert [after for _, _, after, _ in ledger] == running
    assert await _account(database.control_plane, team_id) == (running[-1], 50)


async def test_entries_are_dated_in_the_order_of_their_versions(database: Database) -> None:
    """Also where an older transaction gets the account later."""
    team_id = await open_team(database.control_plane)
    async with database.control_plane.connect() as old:
        await old.execute(text("SELECT now()"))
        first = await pay_in(database.control_plane, team_id, "1")
        second = await credit(
            old, Posting(team_id=team_id, amount_usd=Decimal(1), reason=Reason.CREDIT)
        )
        await old.commit()
    assert (first.account_version, second.account_version) == (1, 2)
    assert first.created_at < second.created_at


async def test_several_accounts_are_debited_in_one_round_trip(database: Database) -> None:
    teams = [await open_team(database.control_plane) for _ in range(3)]
    teams.sort(reverse=True)
    price_id = await add_price(database.control_plane)
    records = [await add_record(database.settlement, team_id) for team_id in teams]
    postings = [
        Posting(team_id=team_id, amount_usd=Decimal(n), reason=Reason.USAGE, reference=str(n))
        for n, team_id in enumerate(teams, start=1)
    ]
    async with database.settlement.begin() as connection:
        entries = await debit_usage(connection, postings)
        for entry, record_id in zip(entries, records, strict=True):
            await charge(connection, entry.team_id, price_id, entry, {record_id: entry.amount_usd})
    assert [(e.team_id, e.amount_usd, e.reference) for e in entries] == [
        (p.team_id, p.amount_usd, p.reference) for p in postings
    ]
    # The locks were taken in id order, whatever the order of the postings.
    assert [e.team_id for e in sorted(entries, key=lambda e: e.entry_id)] == sorted(teams)


async def test_one_refused_debit_refuses_all(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    postings = [
        Posting(team_id=team, amount_usd=Decimal(1), reason=Reason.USAGE)
        for team in (team_id, "nobody")
    ]
    async with database.settlement.connect() as connection:
        with pytest.raises(UnknownAccountError):
            await debit_usage(connection, postings)
    assert await _account(database.settlement, team_id) == (Decimal(0), 0)


async def test_no_debits_are_no_entries(database: Database) -> None:
    async with database.settlement.connect() as connection:
        assert await debit_usage(connection, []) == []


async def test_a_locked_account_is_skipped_and_comes_back(database: Database) -> None:
    teams = sorted([await open_team(database.control_plane) for _ in range(3)])
    async with database.settlement.connect() as one, database.settlement.connect() as other:
        held = await lock_accounts(one, [teams[1], "nobody"])
        assert [account.team_id for account in held] == [teams[1]]
        assert [(held[0].balance_usd, held[0].version)] == [(Decimal(0), 0)]
        rest = await lock_accounts(other, teams[::-1])
        assert [account.team_id for account in rest] == [teams[0], teams[2]]
        await one.commit()
        assert [a.team_id for a in await lock_accounts(other, teams)] == teams


async def test_a_credit_waits_for_whoever_holds_the_account(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    async with database.settlement.connect() as holder:
        await lock_accounts(holder, [team_id])
        waiting = asyncio.create_task(pay_in(database.control_plane, team_id, "1"))
        await _until_somebody_waits_for(database.owner, holder_pid=await _pid(holder))
        assert not waiting.done()
        await holder.commit()
    assert (await waiting).account_version == 1


async def _pid(connection: AsyncConnection) -> int:
    pid: int = await connection.scalar(text("SELECT pg_backend_pid()"))
    return pid


async def _until_somebody_waits_for(owner: AsyncEngine, holder_pid: int) -> None:
    blocked = text("SELECT count(*) FROM pg_locks WHERE :holder = ANY (pg_blocking_pids(pid))")
    async with owner.connect() as connection:
        # ASYNC110: Postgres tells nobody when somebody begins to wait for a lock.
        while not await connection.scalar(blocked, {"holder": holder_pid}):
            await asyncio.sleep(0.01)
