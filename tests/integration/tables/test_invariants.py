"""What is always true stays true, also against the owner of the database."""

import uuid
from decimal import Decimal

import pytest
from integration.tables.conftest import Database
from integration.tables.rows import (
    add_price,
    add_record,
    charge,
    new_name,
    open_team,
    pay_in,
    settle_one,
)
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from tables.account import Entry, Posting, debit
from tables.ledger import Reason


async def _debit(connection: AsyncConnection, team_id: str, amount_usd: str) -> Entry:
    posting = Posting(team_id=team_id, amount_usd=Decimal(amount_usd), reason=Reason.USAGE)
    return await debit(connection, posting)


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(f"{verb} {table}{rest}", id=f"{verb.split()[0].lower()} {table}")
        for table, column in [
            ("ledger_entry", "note"),
            ("usage_charge", "created_at"),
            ("price", "created_at"),
        ]
        for verb, rest in [
            ("UPDATE", f" SET {column} = {column}"),
            ("DELETE FROM", ""),
            ("TRUNCATE", " CASCADE"),
        ]
    ]
    + [
        pytest.param("DELETE FROM account", id="delete account"),
        pytest.param("TRUNCATE account CASCADE", id="truncate account"),
        pytest.param("TRUNCATE team CASCADE", id="truncate team"),
    ],
)
async def test_not_even_the_owner_can(database: Database, statement: str) -> None:
    team_id = await open_team(database.control_plane)
    await settle_one(
        database.settlement, team_id, await add_price(database.control_plane), Decimal(1)
    )
    async with database.owner.connect() as connection:
        with pytest.raises(DBAPIError, match="written once") as raised:
            await connection.execute(text(statement))
    assert getattr(raised.value.orig, "sqlstate", None) == "23001"


async def test_what_guards_invariants_is_never_switched_off(database: Database) -> None:
    """A trigger that is enabled ALWAYS also runs where session_replication_role is `replica`."""
    async with database.owner.connect() as connection:
        triggers = (
            await connection.execute(
                text(
                    "SELECT tgname, CAST(tgenabled AS text) AS mode FROM pg_trigger"
                    " JOIN pg_class AS t ON t.oid = tgrelid"
                    " WHERE NOT tgisinternal AND t.relnamespace = to_regnamespace('public')"
                )
            )
        ).all()
    assert {trigger.tgname: trigger.mode for trigger in triggers} == {
        "account_matches_ledger": "A",
        "account_stays": "A",
        "ledger_entry_adds_up": "A",
        "ledger_entry_is_append_only": "A",
        "price_is_append_only": "A",
        "record_decision_is_append_only": "A",
        "spend_threshold_is_append_only": "A",
        "usage_charge_is_append_only": "A",
        "usage_charges_fit": "A",
        # These write, and what they wrote comes by replication itself.
        "team_open_account": "O",
        "team_raise_tier_version": "O",
        "tier_raise_version": "O",
    }


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param("balance_usd = 9", "version of account", id="the balance alone"),
        pytest.param("version = version + 1", "last ledger entry", id="the version alone"),
        pytest.param("balance_usd = 9, version = 3", "last ledger entry", id="both, no entry"),
        pytest.param("balance_usd = 0, version = 0", "version of account", id="to the beginning"),
        pytest.param("balance_usd = 5, version = 1", "version of account", id="to an old entry"),
        pytest.param("version = 2", "version of account", id="nothing at all"),
    ],
)
async def test_no_balance_moves_without_an_entry(database: Database, change: str, why: str) -> None:
    team_id = await open_team(database.control_plane)
    await pay_in(database.control_plane, team_id, "5")
    await pay_in(database.control_plane, team_id, "2")
    update = f"UPDATE account SET {change} WHERE team_id = :team"  # noqa: S608 - the cases above
    async with database.owner.connect() as connection:
        await connection.execute(text(update), {"team": team_id})
        with pytest.raises(DBAPIError, match=why):
            await connection.commit()


@pytest.mark.parametrize(
    ("version", "amount", "after", "why"),
    [
        pytest.param(2, 1, 6, "ahead of its account", id="the account did not move"),
        pytest.param(3, 1, 6, "does not follow", id="a version is left out"),
        pytest.param(2, 1, 7, "does not follow", id="the sum is wrong"),
    ],
)
async def test_no_entry_without_its_balance(
    database: Database, version: int, amount: int, after: int, why: str
) -> None:
    team_id = await open_team(database.control_plane)
    await pay_in(database.control_plane, team_id, "5")
    async with database.owner.connect() as connection:
        await connection.execute(
            text(
                "INSERT INTO ledger_entry (team_id, direction, reason, amount_usd,"
                " balance_after_usd, account_version)"
                " VALUES (:team, 'CREDIT', 'CREDIT', :amount, :after, :version)"
            ),
            {"team": team_id, "amount": amount, "after": after, "version": version},
        )
        with pytest.raises(DBAPIError, match=why):
            await connection.commit()


async def test_an_account_can_only_be_opened_empty(database: Database) -> None:
    async with database.owner.connect() as connection:
        await connection.execute(text("ALTER TABLE team DISABLE TRIGGER team_open_account"))
        await connection.execute(
            text("INSERT INTO tier (tier_id, rpm, tpm) VALUES ('t-rich', 1, 1);")
        )
        await connection.execute(
            text("INSERT INTO team (team_id, name, tier_id) VALUES ('rich', 'r', 't-rich')")
        )
        await connection.execute(
            text("INSERT INTO account (team_id, balance_usd) VALUES ('rich', 100)")
        )
        with pytest.raises(DBAPIError, match="last ledger entry"):
            await connection.commit()


@pytest.mark.parametrize(
    "charged",
    [
        pytest.param([], id="no charge"),
        pytest.param(["1"], id="too little"),
        pytest.param(["1", "0.999999999999999999999999999999"], id="a hair too little"),
    ],
)
async def test_charges_must_add_up_to_their_entry_at_commit(
    database: Database, charged: list[str]
) -> None:
    team_id = await open_team(database.control_plane)
    price_id = await add_price(database.control_plane)
    records = [await add_record(database.settlement, team_id) for _ in charged]
    async with database.settlement.connect() as connection:
        entry = await _debit(connection, team_id, "2")
        amounts = dict(zip(records, map(Decimal, charged), strict=True))
        await charge(connection, team_id, price_id, entry, amounts)
        with pytest.raises(DBAPIError, match="add up to") as raised:
            await connection.commit()
    assert isinstance(raised.value, IntegrityError)


async def test_charges_cannot_exceed_their_entry(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    price_id = await add_price(database.control_plane)
    record_id = await add_record(database.settlement, team_id)
    async with database.settlement.connect() as connection:
        entry = await _debit(connection, team_id, "2")
        with pytest.raises(DBAPIError, match="takes no such charge"):
            await charge(connection, team_id, price_id, entry, {record_id: Decimal("2.000000001")})


async def test_a_committed_entry_takes_no_further_charge(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    price_id = await add_price(database.control_plane)
    entry = await settle_one(database.settlement, team_id, price_id, Decimal(2))
    late = await add_record(database.settlement, team_id)
    async with database.settlement.connect() as connection:
        with pytest.raises(DBAPIError, match="takes no such charge"):
            await charge(connection, team_id, price_id, entry, {late: Decimal("1e-12")})


async def test_a_credit_takes_no_charge(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    price_id = await add_price(database.control_plane)
    entry = await pay_in(database.control_plane, team_id, "2")
    record_id = await add_record(database.settlement, team_id)
    async with database.settlement.connect() as connection:
        with pytest.raises(DBAPIError, match="takes no such charge"):
            await charge(connection, team_id, price_id, entry, {record_id: Decimal(2)})


async def test_a_record_is_charged_once(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    price_id = await add_price(database.control_plane)
    record_id = await add_record(database.settlement, team_id)
    async with database.settlement.begin() as connection:
        entry = await _debit(connection, team_id, "2")
        await charge(connection, team_id, price_id, entry, {record_id: Decimal(2)})
    async with database.settlement.connect() as connection:
        entry = await _debit(connection, team_id, "2")
        with pytest.raises(IntegrityError, match="usage_charge_pkey"):
            await charge(connection, team_id, price_id, entry, {record_id: Decimal(2)})


async def test_a_record_is_stored_once(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    inference_id = new_name("inference")
    await add_record(database.settlement, team_id, inference_id=inference_id)
    await add_record(database.settlement, team_id, inference_id=inference_id, attempt_no=2)
    with pytest.raises(IntegrityError, match="inference_id_attempt_no_key"):
        await add_record(database.settlement, team_id, inference_id=inference_id)


async def test_a_charge_is_of_the_team_of_its_record_and_its_entry(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    other_id = await open_team(database.control_plane)
    price_id = await add_price(database.control_plane)
    record_id = await add_record(database.settlement, other_id)
    async with database.settlement.connect() as connection:
        entry = await _debit(connection, team_id, "2")
        with pytest.raises(IntegrityError, match="inference_record_id_fkey"):
            await charge(connection, team_id, price_id, entry, {record_id: Decimal(2)})
    async with database.settlement.connect() as connection:
        entry = await _debit(connection, team_id, "2")
        with pytest.raises(IntegrityError, match="ledger_entry_id_team_id_fkey"):
            await charge(connection, other_id, price_id, entry, {record_id: Decimal(2)})


async def test_a_charge_names_a_price_that_exists(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    record_id = await add_record(database.settlement, team_id)
    async with database.settlement.connect() as connection:
        entry = await _debit(connection, team_id, "2")
        with pytest.raises(IntegrityError, match="price_id_fkey"):
            await charge(connection, team_id, uuid.uuid4(), entry, {record_id: Decimal(2)})


async def test_a_free_record_has_a_charge_of_zero_and_no_entry(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    price_id = await add_price(database.control_plane)
    record_id = await add_record(database.settlement, team_id)
    async with database.settlement.begin() as connection:
        await charge(connection, team_id, price_id, None, {record_id: Decimal(0)})
    other_id = await add_record(database.settlement, team_id)
    async with database.settlement.connect() as connection:
        with pytest.raises(IntegrityError, match="usage_charge_ledger_entry_id_check"):
            await charge(connection, team_id, price_id, None, {other_id: Decimal("1e-9")})
