"""What is always true stays true, also against the owner of the database."""

import uuid
from decimal import Decimal

import pytest
from integration.tables.conftest import Database
from integration.tables.rows import (
    ONE_DOLLAR_EACH,
    add_price,
    add_record,
    charge,
    new_name,
    open_team,
    pay_in,
    record_values,
    settle_one,
)
from sqlalchemy import insert, text
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from tables import InferenceRecord, Price
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


@pytest.mark.parametrize(
    ("changes", "constraint"),
    [
        pytest.param({"attempt_no": 0}, "attempt_no", id="attempt zero"),
        pytest.param({"state": "DONE"}, "state", id="a state nobody knows"),
        pytest.param({"state": "SETTLED"}, "settled_at", id="settled at no time"),
        pytest.param({"settled_at": text("now()")}, "settled_at", id="pending but settled"),
        pytest.param({"state": "HELD"}, "held_reason", id="held without a reason"),
        pytest.param({"held_reason": "x"}, "held_reason", id="a reason without being held"),
        pytest.param({"output_tokens": None}, "pending_usage", id="pending with unknown usage"),
        pytest.param({"input_tokens": -1}, "input_tokens", id="negative input"),
        pytest.param({"cache_read_tokens": -1}, "cache_read_tokens", id="negative cache read"),
        pytest.param({"cache_write_5m_tokens": -1}, "cache_write_5m_tokens", id="negative 5m"),
        pytest.param({"cache_write_1h_tokens": -1}, "cache_write_1h_tokens", id="negative 1h"),
        pytest.param({"output_tokens": -1}, "output_tokens", id="negative output"),
        pytest.param({"reasoning_tokens": -1}, "reasoning_tokens", id="negative reasoning"),
    ],
)
async def test_an_impossible_record_is_refused(
    database: Database, changes: dict[str, object], constraint: str
) -> None:
    async with database.settlement.connect() as connection:
        with pytest.raises(IntegrityError, match=f"inference_record_{constraint}_check"):
            await connection.execute(
                insert(InferenceRecord).values(**record_values("team", **changes))
            )


async def test_an_observation_is_kept_whatever_it_names(database: Database) -> None:
    record_id = await add_record(
        database.settlement,
        "a-team-that-was-never-there",
        price_id="not even a uuid",
        state="HELD",
        held_reason="no such price",
        input_tokens=2**63 - 1,
    )
    assert record_id > 0


@pytest.mark.parametrize("amount", ["-0.1", "NaN", "Infinity"])
@pytest.mark.parametrize("column", sorted(ONE_DOLLAR_EACH))
async def test_an_impossible_price_is_refused(database: Database, column: str, amount: str) -> None:
    values = ONE_DOLLAR_EACH | {column: Decimal(amount)}
    async with database.control_plane.connect() as connection:
        with pytest.raises(IntegrityError, match=f"price_{column}_check"):
            await connection.execute(
                insert(Price).values(
                    provider="p", model=new_name("m"), effective_from=text("now()"), **values
                )
            )


async def test_two_versions_of_a_price_cannot_begin_at_once(database: Database) -> None:
    statement = insert(Price).values(
        provider="p", model=new_name("m"), effective_from=text("'2026-01-01Z'"), **ONE_DOLLAR_EACH
    )
    async with database.control_plane.connect() as connection:
        await connection.execute(statement)
        with pytest.raises(IntegrityError, match="price_provider_model_effective_from_key"):
            await connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        pytest.param(
            "INSERT INTO tier (tier_id, rpm, tpm) VALUES ('t', 0, 1)", "tier_rpm", id="no rpm"
        ),
        pytest.param(
            "INSERT INTO tier (tier_id, rpm, tpm) VALUES ('t', 1, 0)", "tier_tpm", id="no tpm"
        ),
        pytest.param(
            "INSERT INTO tier (tier_id, rpm, tpm, request_burst) VALUES ('t', 1, 1, -1)",
            "tier_request_burst",
            id="negative request burst",
        ),
        pytest.param(
            "INSERT INTO tier (tier_id, rpm, tpm, token_burst) VALUES ('t', 1, 1, -1)",
            "tier_token_burst",
            id="negative token burst",
        ),
        pytest.param(
            "INSERT INTO tier (tier_id, rpm, tpm, limits) VALUES ('t', 1, 1, '[]')",
            "tier_limits",
            id="limits without names",
        ),
        pytest.param(
            "INSERT INTO tier (tier_id, rpm, tpm) VALUES ('a.b', 1, 1)",
            "tier_tier_id",
            id="a tier id with a dot",
        ),
        pytest.param(
            "INSERT INTO team (team_id, name, tier_id) VALUES ('{x}', 'x', 'x')",
            "team_team_id",
            id="a team id with a brace",
        ),
        pytest.param(
            "INSERT INTO team (team_id, name, tier_id) VALUES (E'x\\n', 'x', 'x')",
            "team_team_id",
            id="a team id with a newline",
        ),
        pytest.param(
            "INSERT INTO team (team_id, name, tier_id) VALUES ('', 'x', 'x')",
            "team_team_id",
            id="an empty team id",
        ),
        pytest.param(
            "INSERT INTO team (team_id, name, tier_id) VALUES (repeat('x', 65), 'x', 'x')",
            "team_team_id",
            id="a team id of 65",
        ),
        pytest.param(
            "INSERT INTO team (team_id, name, tier_id) VALUES ('é', 'x', 'x')",
            "team_team_id",
            id="a team id beyond ASCII",
        ),
        pytest.param(
            "INSERT INTO api_key (key_id, team_id, name, secret_hash)"
            " VALUES ('k*', 'x', 'x', decode(repeat('00', 32), 'hex'))",
            "api_key_key_id",
            id="a key id that is a wildcard",
        ),
        pytest.param(
            "INSERT INTO api_key (key_id, team_id, name, secret_hash) VALUES ('k', 'x', 'x', '')",
            "api_key_secret_hash",
            id="a key without a hash",
        ),
        pytest.param(
            "INSERT INTO admin_idempotency (key, route, request_hash) VALUES ('k', 'r', '')",
            "admin_idempotency_request_hash",
            id="an idempotency key without a hash",
        ),
        pytest.param(
            "INSERT INTO admin_idempotency (key, route, request_hash, status)"
            " VALUES ('k', 'r', decode(repeat('00', 32), 'hex'), 200)",
            "admin_idempotency_response",
            id="a status without a response",
        ),
    ],
)
async def test_an_impossible_row_is_refused(
    database: Database, statement: str, constraint: str
) -> None:
    async with database.control_plane.connect() as connection:
        with pytest.raises(IntegrityError, match=f"{constraint}_check"):
            await connection.execute(text(statement))


async def test_a_tier_change_raises_the_fence_by_one(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    other = await open_team(database.control_plane)
    change = text(
        "UPDATE team SET tier_id = (SELECT tier_id FROM team WHERE team_id = :other),"
        " name = :name WHERE team_id = :team RETURNING tier_version"
    )
    async with database.control_plane.begin() as connection:
        names = {"team": team_id, "other": other}
        assert await connection.scalar(change, names | {"name": "moved"}) == 2
        assert await connection.scalar(change, names | {"name": "only renamed"}) == 2
        assert await connection.scalar(change, names | {"other": other, "name": "again"}) == 2


async def test_a_policy_change_raises_the_tiers_version(database: Database) -> None:
    tier_id = new_name("tier")
    async with database.control_plane.begin() as connection:
        created = (
            await connection.execute(
                text(
                    "INSERT INTO tier (tier_id, rpm, tpm) VALUES (:tier, 1, 1)"
                    " RETURNING version, updated_at"
                ),
                {"tier": tier_id},
            )
        ).one()
        changed = (
            await connection.execute(
                text("UPDATE tier SET rpm = 2 WHERE tier_id = :tier RETURNING version, updated_at"),
                {"tier": tier_id},
            )
        ).one()
    assert (created.version, changed.version) == (1, 2)
    assert created.updated_at < changed.updated_at


async def test_a_tier_in_use_cannot_go(database: Database) -> None:
    await open_team(database.control_plane)
    async with database.owner.connect() as connection:
        with pytest.raises(IntegrityError, match="team_tier_id_fkey"):
            await connection.execute(text("DELETE FROM tier"))
