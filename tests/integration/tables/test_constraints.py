"""Rows that make no sense are refused, by the rule that they break."""

from decimal import Decimal

import pytest
from integration.tables.conftest import Database
from integration.tables.rows import ONE_DOLLAR_EACH, add_record, new_name, open_team, record_values
from sqlalchemy import insert, text
from sqlalchemy.exc import IntegrityError

from tables import InferenceRecord, Price


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


@pytest.mark.parametrize("amount", ["-0.1", "1000000.1", "NaN", "Infinity"])
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
            "INSERT INTO tier (tier_id, rpm, tpm) VALUES ('t', 60000001, 1)",
            "tier_rpm",
            id="more rpm than time is exact",
        ),
        pytest.param(
            "INSERT INTO tier (tier_id, rpm, tpm) VALUES ('t', 1, 1000000000001)",
            "tier_tpm",
            id="more tpm than time is exact",
        ),
        pytest.param(
            "INSERT INTO tier (tier_id, rpm, tpm, limits)"
            " VALUES ('t', 1, 1, '{\"input_tpm\": -1}')",
            "tier_limits",
            id="a negative further limit",
        ),
        pytest.param(
            "INSERT INTO tier (tier_id, rpm, tpm, limits)"
            ' VALUES (\'t\', 1, 1, \'{"model_rates": {"m": {"rpm": 1.5}}}\')',
            "tier_limits",
            id="half a request",
        ),
        pytest.param(
            "INSERT INTO api_key (key_id, team_id, name, secret_hash, limits)"
            " VALUES ('k', 'x', 'x', decode(repeat('00', 32), 'hex'), '{\"rpm\": 1e16}')",
            "api_key_limits",
            id="more than a key's counter is exact",
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


async def test_a_tier_in_use_cannot_go(database: Database) -> None:
    await open_team(database.control_plane)
    async with database.owner.connect() as connection:
        with pytest.raises(IntegrityError, match="team_tier_id_fkey"):
            await connection.execute(text("DELETE FROM tier"))
