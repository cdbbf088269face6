"""What each service's role may do, and that it may do nothing else."""

from decimal import Decimal

import pytest
from integration.tables.conftest import Database
from integration.tables.rows import open_team
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from quotagate.stack import Servers
from tables.account import Posting, credit, debit, lock_accounts
from tables.ledger import Reason

READ, ADD = "SELECT", "INSERT"

# Table → role → rights; a right on some columns only names them.
RIGHTS: dict[str, dict[str, set[str]]] = {
    "account": {
        "tier_cache": {READ},
        "settlement": {READ},
        "control_plane": {READ},
    },
    "admin_idempotency": {
        "control_plane": {READ, ADD, "DELETE", "UPDATE(response, status)"},
    },
    "alembic_version": {
        "tier_cache": {READ},
        "settlement": {READ},
        "control_plane": {READ},
    },
    "api_key": {
        "tier_cache": {READ},
        "settlement": {"SELECT(key_id, limits, team_id)"},
        "control_plane": {
            READ,
            ADD,
            "UPDATE(allowed_models, expires_at, limits, name, old_secret_hash, old_secret_until,"
            " revoked_at, secret_hash)",
        },
    },
    "inference_record": {
        "tier_cache": {
            "SELECT(attempt_no, cache_read_tokens, cache_write_1h_tokens, cache_write_5m_tokens,"
            " finished_at, inference_id, input_tokens, output_tokens, reasoning_tokens, started_at,"
            " team_id)"
        },
        "settlement": {READ, ADD, "UPDATE(held_reason, settled_at, state)"},
        "control_plane": {READ},
    },
    "ledger_entry": {
        "settlement": {READ},
        "control_plane": {READ},
    },
    "outbox": {
        "settlement": {"INSERT(message_id, payload, subject)"},
        "control_plane": {READ, ADD, "DELETE", "UPDATE(published_at)"},
    },
    "price": {
        "tier_cache": {READ},
        "settlement": {READ},
        "control_plane": {READ, ADD},
    },
    "spend": {
        "settlement": {READ, ADD, "UPDATE(account_version, amount_usd)", "DELETE"},
        "control_plane": {READ},
    },
    "spend_threshold": {
        "settlement": {READ, ADD},
        "control_plane": {READ},
    },
    "team": {
        "tier_cache": {READ},
        "settlement": {READ},
        "control_plane": {
            READ,
            "INSERT(deleted_at, name, team_id, tier_id)",
            "UPDATE(deleted_at, name, tier_id)",
        },
    },
    "tier": {
        "tier_cache": {READ},
        "settlement": {READ},
        "control_plane": {
            READ,
            "INSERT(limits, request_burst, rpm, tier_id, token_burst, tpm)",
            "UPDATE(limits, request_burst, rpm, token_burst, tpm)",
        },
    },
    "usage_charge": {
        "settlement": {READ, ADD},
        "control_plane": {READ},
    },
    "webhook_delivery": {
        "settlement": {"INSERT(kind, message_id, payload)"},
        "control_plane": {
            READ,
            "UPDATE(attempts, delivered_at, given_up_at, last_error, last_status, next_attempt_at)",
        },
    },
}

FUNCTIONS: dict[str, set[str]] = {
    "account_credit": {"control_plane"},
    "account_debit_adjustment": {"control_plane"},
    "account_debit_usage": {"settlement"},
    "account_lock": {"settlement"},
    "spend_of": {"tier_cache"},
    "spend_settled": {"settlement"},
}

_TABLE_RIGHTS = """
SELECT c.relname AS object, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
    a.privilege_type AS privilege
FROM pg_class AS c, LATERAL aclexplode(c.relacl) AS a
WHERE c.relnamespace = 'public'::regnamespace AND a.grantee <> c.relowner
UNION ALL
SELECT c.relname, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
    a.privilege_type || '(' || string_agg(t.attname, ', ' ORDER BY t.attname::text) || ')'
FROM pg_attribute AS t JOIN pg_class AS c ON c.oid = t.attrelid, LATERAL aclexplode(t.attacl) AS a
WHERE c.relnamespace = 'public'::regnamespace
GROUP BY c.relname, a.grantee, a.privilege_type
"""

_FUNCTION_RIGHTS = """
SELECT p.proname AS object, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
FROM pg_proc AS p, LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
WHERE p.pronamespace = 'public'::regnamespace AND a.grantee <> p.proowner
"""


async def test_rights_on_tables_are_exactly_these(database: Database) -> None:
    granted: dict[str, dict[str, set[str]]] = {}
    async with database.owner.connect() as connection:
        for table, grantee, right in await connection.execute(text(_TABLE_RIGHTS)):
            role = grantee.removeprefix("quotagate_")
            granted.setdefault(table, {}).setdefault(role, set()).add(right)
    assert granted == RIGHTS


async def test_rights_on_functions_are_exactly_these(database: Database) -> None:
    granted: dict[str, set[str]] = {}
    async with database.owner.connect() as connection:
        for function, grantee in await connection.execute(text(_FUNCTION_RIGHTS)):
            granted.setdefault(function, set()).add(grantee.removeprefix("quotagate_"))
    assert granted == FUNCTIONS


async def test_every_function_pins_its_search_path(database: Database) -> None:
    async with database.owner.connect() as connection:
        functions = (
            await connection.execute(
                text(
                    "SELECT proname, proconfig FROM pg_proc"
                    " WHERE pronamespace = 'public'::regnamespace"
                )
            )
        ).all()
    assert len(functions) >= len(FUNCTIONS)
    for name, configuration in functions:
        assert "search_path=public, pg_temp" in (configuration or []), name


@pytest.mark.parametrize("role", ["tier_cache", "settlement", "control_plane"])
async def test_a_service_is_nobody_in_particular(database: Database, role: str) -> None:
    async with database.engine(role).connect() as connection:
        row = (
            await connection.execute(
                text(
                    "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls,"
                    " has_schema_privilege('public', 'CREATE'),"
                    " has_database_privilege(current_database(), 'CREATE'),"
                    " has_database_privilege(current_database(), 'TEMPORARY'),"
                    " EXISTS (SELECT FROM pg_auth_members WHERE member = r.oid)"
                    " FROM pg_roles AS r WHERE rolname = current_user"
                )
            )
        ).one()
    assert not any(row)


FORBIDDEN = [
    ("tier_cache", "UPDATE account SET balance_usd = 1", "move a balance"),
    ("tier_cache", "INSERT INTO team (team_id, name, tier_id) VALUES ('x', 'x', 'x')", "add"),
    ("tier_cache", "SELECT FROM ledger_entry", "read the ledger"),
    ("tier_cache", "SELECT FROM account_lock(ARRAY['x'])", "hold an account"),
    ("tier_cache", "SELECT account_credit('x', 'CREDIT', 1, NULL, NULL)", "credit"),
    ("settlement", "UPDATE account SET balance_usd = 1", "move a balance"),
    ("settlement", "SELECT FROM account FOR UPDATE", "hold an account by hand"),
    ("settlement", "INSERT INTO account (team_id) VALUES ('x')", "open an account"),
    ("settlement", "DELETE FROM ledger_entry", "delete entries"),
    (
        "settlement",
        "INSERT INTO ledger_entry (team_id, direction, reason, amount_usd, balance_after_usd,"
        " account_version) VALUES ('x', 'CREDIT', 'CREDIT', 1, 1, 1)",
        "write an entry by hand",
    ),
    ("settlement", "SELECT account_credit('x', 'CREDIT', 1, NULL, NULL)", "credit"),
    ("settlement", "SELECT account_debit_adjustment('x', 1, NULL, NULL)", "adjust"),
    (
        "settlement",
        "SELECT account_post('x', 'CREDIT', 'CREDIT', 1, NULL, NULL)",
        "call the function below the functions",
    ),
    ("settlement", "UPDATE usage_charge SET amount_usd = 0", "change a charge"),
    ("settlement", "DELETE FROM usage_charge", "delete a charge"),
    ("settlement", "UPDATE inference_record SET input_tokens = 0", "change an observation"),
    ("settlement", "DELETE FROM inference_record", "delete a record"),
    ("settlement", "TRUNCATE inference_record CASCADE", "empty the records"),
    ("settlement", "INSERT INTO price DEFAULT VALUES", "make a price"),
    ("settlement", "SELECT secret_hash FROM api_key", "read the hash of a key"),
    ("settlement", "SELECT FROM outbox", "read the outbox"),
    ("settlement", "UPDATE spend SET team_id = 'x'", "give spend to another team"),
    ("settlement", "UPDATE spend_threshold SET spent_usd = 1", "change a threshold"),
    ("settlement", "SELECT FROM webhook_delivery", "read deliveries"),
    ("tier_cache", "SELECT FROM spend", "read what was spent past the function"),
    ("control_plane", "UPDATE spend SET amount_usd = 0", "change what was spent"),
    ("control_plane", "UPDATE webhook_delivery SET payload = ''", "change what is told"),
    ("control_plane", "UPDATE account SET balance_usd = 1", "move a balance"),
    ("control_plane", "DELETE FROM account", "close an account"),
    ("control_plane", "UPDATE ledger_entry SET note = 'x'", "change an entry"),
    ("control_plane", "SELECT account_debit_usage('x', 1, NULL, NULL)", "debit usage"),
    ("control_plane", "SELECT FROM account_lock(ARRAY['x'])", "hold an account"),
    ("control_plane", "UPDATE price SET input_usd_per_million = 0", "edit a price"),
    ("control_plane", "DELETE FROM price", "delete a price"),
    ("control_plane", "INSERT INTO usage_charge DEFAULT VALUES", "charge"),
    ("control_plane", "UPDATE inference_record SET state = 'HELD'", "change a record"),
    ("control_plane", "UPDATE team SET tier_version = 9", "set the fence"),
    ("control_plane", "UPDATE tier SET version = 9", "set a tier's version"),
    ("control_plane", "UPDATE api_key SET team_id = 'x'", "give a key to another team"),
    ("control_plane", "DELETE FROM team", "delete a team"),
]


@pytest.mark.parametrize(
    ("role", "statement"),
    [pytest.param(role, sql, id=f"{role} can't {what}") for role, sql, what in FORBIDDEN],
)
async def test_forbidden(database: Database, role: str, statement: str) -> None:
    async with database.engine(role).connect() as connection:
        # tier-cache's sessions start read-only; what it may not do must not hang on that alone.
        await connection.execute(text("SET TRANSACTION READ WRITE"))
        with pytest.raises(DBAPIError) as raised:
            await connection.execute(text(statement))
    assert getattr(raised.value.orig, "sqlstate", None) == "42501", raised.value


@pytest.mark.parametrize("role", ["tier_cache", "settlement", "control_plane"])
@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("CREATE TABLE evil (x integer)", id="a table"),
        pytest.param("CREATE TEMPORARY TABLE account (x integer)", id="a table in front of ours"),
        pytest.param("CREATE SCHEMA evil", id="a schema"),
        pytest.param("SET ROLE quotagate", id="the owner's role"),
        pytest.param("SET session_replication_role = replica", id="no triggers"),
        pytest.param("ALTER TABLE account DISABLE TRIGGER ALL", id="no triggers on a table"),
    ],
)
async def test_no_service_can_give_itself(database: Database, role: str, statement: str) -> None:
    async with database.engine(role).connect() as connection:
        await connection.execute(text("SET TRANSACTION READ WRITE"))
        with pytest.raises(DBAPIError) as raised:
            await connection.execute(text(statement))
    assert getattr(raised.value.orig, "sqlstate", None) == "42501", raised.value


async def test_tier_cache_starts_read_only(database: Database) -> None:
    async with database.tier_cache.connect() as connection:
        assert await connection.scalar(text("SHOW transaction_read_only")) == "on"
        with pytest.raises(DBAPIError) as raised:
            await connection.execute(text("UPDATE account SET balance_usd = 1"))
    assert getattr(raised.value.orig, "sqlstate", None) == "25006"


async def test_settlement_cannot_credit_and_control_plane_cannot_debit_usage(
    database: Database,
) -> None:
    team_id = await open_team(database.control_plane)
    up = Posting(team_id=team_id, amount_usd=Decimal(1), reason=Reason.CREDIT)
    used = Posting(team_id=team_id, amount_usd=Decimal(1), reason=Reason.USAGE)
    async with database.settlement.connect() as connection:
        with pytest.raises(DBAPIError, match="permission denied"):
            await credit(connection, up)
    async with database.control_plane.connect() as connection:
        with pytest.raises(DBAPIError, match="permission denied"):
            await debit(connection, used)
    async with database.control_plane.connect() as connection:
        with pytest.raises(DBAPIError, match="permission denied"):
            await lock_accounts(connection, [team_id])


async def test_a_credit_for_usage_is_refused_by_the_database_too(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    async with database.control_plane.connect() as connection:
        with pytest.raises(DBAPIError, match="ledger_entry_reason_check"):
            await connection.execute(
                text("SELECT account_credit(:team, 'USAGE', 1, NULL, NULL)"), {"team": team_id}
            )


async def test_a_wrong_password_is_refused(servers: Servers) -> None:
    url = make_url(servers.database_urls["quotagate_settlement"])
    engine = create_async_engine(url.set(drivername="postgresql+asyncpg", password="wrong"))
    with pytest.raises(Exception, match="password authentication failed"):
        await engine.connect().start()
    await engine.dispose()
