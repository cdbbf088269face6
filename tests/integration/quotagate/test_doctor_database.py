"""The doctor against a database: every guard removed, every right too much or too little.

All of it happens in transactions that are rolled back.
"""

import contextlib
from collections.abc import AsyncIterator

import pytest
from integration.quotagate.scratch import make_database
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from kit.flaws import Flaw
from quotagate.doctor.database import database_flaws
from quotagate.doctor.rights import RIGHTS
from quotagate.stack import Stack
from tables.guards import GUARDS, Guard

# What the schema has, and no promise needs: what another guard implies, and what only helps.
_NO_PROMISE = {
    "unique version_num of alembic_version",
    "unique record_id of inference_record",
    "unique team_id, record_id of inference_record",
    "unique entry_id, team_id of ledger_entry",
    "unique id of outbox",
    "unique tier_id of tier",
    "unique decision_id of record_decision",
    "logged table alembic_version",
    "foreign key api_key_team_id_fkey of api_key",
    "foreign key team_tier_id_fkey of team",
    "foreign key spend_team_id_fkey of spend",
    "foreign key spend_threshold_team_id_fkey of spend_threshold",
    *(
        f"check spend_threshold_{name}_check of spend_threshold"
        for name in ("mode", "period", "threshold_percent")
    ),
    "check webhook_delivery_attempts_check of webhook_delivery",
    "check webhook_delivery_given_up_at_check of webhook_delivery",
    "check api_key_limits_check of api_key",
    "check api_key_old_secret_check of api_key",
    "check admin_idempotency_request_hash_check of admin_idempotency",
    "check admin_idempotency_response_check of admin_idempotency",
    *(
        f"check tier_{name}_check of tier"
        for name in ("limits", "request_burst", "rpm", "tier_id", "token_burst", "tpm")
    ),
}


@pytest.fixture(scope="session")
async def superuser(lab: Stack, true_books: str) -> AsyncIterator[AsyncConnection]:
    """A database as the superuser sees it; each test rolls back what it did."""
    scratch = await make_database(lab.servers, "examined", template=true_books)
    url = make_url(scratch.url("postgres")).set(drivername="postgresql+asyncpg")
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        yield connection
    await engine.dispose()


@contextlib.asynccontextmanager
async def _after(connection: AsyncConnection, *statements: str) -> AsyncIterator[list[str]]:
    """What the doctor says once the statements were run."""
    async with connection.begin() as transaction:
        for statement in statements:
            await connection.execute(text(statement))
        yield _words(await database_flaws(connection))
        await transaction.rollback()


def _words(flaws: list[Flaw]) -> list[str]:
    return [flaw.what.removeprefix("postgres: ") for flaw in flaws]


async def test_a_migrated_database_is_healthy(superuser: AsyncConnection) -> None:
    async with _after(superuser) as words:
        assert words == []


async def test_everything_of_the_schema_is_a_guard_or_known_to_be_none(
    superuser: AsyncConnection,
) -> None:
    """A new migration must say which promise it keeps."""
    from tables.guards import _LIVE

    async with superuser.begin():
        live = {Guard(*row) for row in await superuser.execute(_LIVE)}
    assert {str(guard) for guard in live - set(GUARDS)} == _NO_PROMISE


async def _remove(connection: AsyncConnection, guard: Guard) -> None:
    match guard.kind:
        case "unique":
            index = await connection.scalar(
                text(
                    "SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
                    " WHERE indrelid = to_regclass(:table) AND indisunique AND ("
                    " SELECT string_agg(attname, ', ' ORDER BY place) FROM"
                    " unnest(CAST(indkey AS smallint[])) WITH ORDINALITY AS part (attnum, place)"
                    " JOIN pg_attribute ON attrelid = indrelid"
                    " AND pg_attribute.attnum = part.attnum) = :columns"
                ),
                {"table": guard.table, "columns": guard.name},
            )
            statement = f"ALTER TABLE {guard.table} DROP CONSTRAINT {index} CASCADE"
        case "foreign key" | "check":
            statement = f"ALTER TABLE {guard.table} DROP CONSTRAINT {guard.name}"
        case "trigger" | "always trigger":
            statement = f"ALTER TABLE {guard.table} DISABLE TRIGGER {guard.name}"
        case "logged table":
            statement = f"UPDATE pg_class SET relpersistence = 'u' WHERE relname = '{guard.table}'"  # noqa: S608 - a name of ours
        case _:
            function = await connection.scalar(
                text(
                    "SELECT CAST(CAST(oid AS regprocedure) AS text) FROM pg_proc"
                    " WHERE proname = :name"
                ),
                {"name": guard.name},
            )
            statement = f"ALTER FUNCTION {function} SECURITY INVOKER"
    await connection.execute(text(statement))


@pytest.mark.parametrize("guard", [pytest.param(guard, id=str(guard)) for guard in sorted(GUARDS)])
async def test_a_guard_that_is_gone_is_missed(superuser: AsyncConnection, guard: Guard) -> None:
    async with superuser.begin() as transaction:
        await _remove(superuser, guard)
        words = _words(await database_flaws(superuser))
        await transaction.rollback()
    assert f"there is no {guard} in force" in words


WEAKENED = [
    pytest.param(
        "ALTER TABLE ledger_entry ENABLE TRIGGER ledger_entry_is_append_only",
        "there is no always trigger ledger_entry_is_append_only of ledger_entry in force",
        id="a trigger that replication mode switches off",
    ),
    pytest.param(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid ="
        " CAST('inference_record_inference_id_attempt_no_key' AS regclass)",
        "there is no unique inference_id, attempt_no of inference_record in force",
        id="an index that is not valid",
    ),
    pytest.param(
        "ALTER TABLE usage_charge DISABLE TRIGGER ALL",
        "there is no foreign key usage_charge_price_id_fkey of usage_charge in force",
        id="a foreign key that is switched off",
    ),
    pytest.param(
        "ALTER FUNCTION account_credit RESET search_path",
        "there is no definer function account_credit in force",
        id="a function whose tables a caller can exchange",
    ),
    pytest.param(
        "DROP TABLE alembic_version", "the database has no tables", id="not migrated at all"
    ),
    pytest.param(
        "UPDATE alembic_version SET version_num = '0000_before'",
        "this command doesn't know the database's revision 0000_before",
        id="a revision that this release doesn't know",
    ),
    pytest.param(
        "ALTER ROLE quotagate_settlement SET synchronous_commit = off",
        "synchronous_commit is off for role quotagate_settlement",
        id="a role that commits without syncing",
    ),
    pytest.param(
        "ALTER DATABASE examined SET synchronous_commit = off",
        "synchronous_commit is off for the database",
        id="a database that commits without syncing",
    ),
]


@pytest.mark.parametrize(("statement", "expected"), WEAKENED)
async def test_what_is_weakened_is_found(
    superuser: AsyncConnection, statement: str, expected: str
) -> None:
    async with _after(superuser, statement) as words:
        assert expected in words


TOO_MUCH = [
    pytest.param(
        "GRANT INSERT ON ledger_entry TO quotagate_settlement",
        "quotagate_settlement may INSERT ledger_entry",
        id="settlement writes the ledger by hand",
    ),
    pytest.param(
        "GRANT UPDATE (balance_usd) ON account TO quotagate_control_plane",
        "quotagate_control_plane may UPDATE (balance_usd) account",
        id="the control plane moves a balance",
    ),
    pytest.param(
        "GRANT DELETE ON usage_charge TO PUBLIC",
        "quotagate_tier_cache may DELETE usage_charge",
        id="everybody deletes charges",
    ),
    pytest.param(
        "GRANT TRUNCATE ON inference_record TO quotagate_settlement",
        "quotagate_settlement may TRUNCATE inference_record",
        id="settlement empties the records",
    ),
    pytest.param(
        "GRANT UPDATE ON inference_record TO quotagate_settlement",
        "quotagate_settlement may UPDATE (",
        id="settlement changes observations",
    ),
    pytest.param(
        "GRANT SELECT (secret_hash) ON api_key TO quotagate_settlement",
        "quotagate_settlement may SELECT (secret_hash) api_key",
        id="settlement reads keys",
    ),
    pytest.param(
        "GRANT EXECUTE ON FUNCTION account_credit TO quotagate_settlement",
        "quotagate_settlement may EXECUTE account_credit",
        id="settlement credits",
    ),
    pytest.param(
        "GRANT EXECUTE ON FUNCTION account_post TO PUBLIC",
        "quotagate_control_plane may EXECUTE account_post",
        id="everybody posts",
    ),
    pytest.param(
        "ALTER ROLE quotagate_settlement SUPERUSER",
        "quotagate_settlement has a superuser's or a creator's attributes",
        id="a superuser",
    ),
    pytest.param(
        "GRANT pg_write_all_data TO quotagate_control_plane",
        "quotagate_control_plane is a member of another role",
        id="a member of a group that writes all",
    ),
    pytest.param(
        "ALTER TABLE outbox OWNER TO quotagate_control_plane",
        "quotagate_control_plane owns tables",
        id="an owner",
    ),
]


@pytest.mark.parametrize(("statement", "expected"), TOO_MUCH)
async def test_a_role_that_may_too_much_is_found(
    superuser: AsyncConnection, statement: str, expected: str
) -> None:
    async with _after(superuser, statement) as words:
        assert any(word.startswith(expected) for word in words), words


@pytest.mark.parametrize("role", sorted(RIGHTS))
async def test_a_role_without_a_right_that_it_needs_is_found(
    superuser: AsyncConnection, role: str
) -> None:
    for table, rights in RIGHTS[role].items():
        for right in rights:
            async with _after(superuser, f"REVOKE {right} ON {table} FROM {role}") as words:
                assert [word for word in words if word.startswith(f"{role} may not {right}")], table


async def test_a_missing_role_is_found(superuser: AsyncConnection) -> None:
    async with _after(
        superuser, "ALTER ROLE quotagate_settlement RENAME TO settlement_of_old"
    ) as words:
        assert words == ["there is no role quotagate_settlement"]
