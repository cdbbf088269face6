"""`migrate` on a real server: from nothing, again, twice at once, and when it goes wrong."""

import asyncio
import shutil
import traceback
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from integration.tables.rows import new_name
from sqlalchemy.engine import make_url

from quotagate import migrate as migrate_module
from quotagate import sql_scripts
from quotagate.database_roles import SERVICE_ROLES
from quotagate.migrate import Phase, migrate, migrate_async
from quotagate.migration_errors import MigrationBusyError, MigrationError, ScriptError
from quotagate.stack import Servers

_HEAD = max(path.stem for path in (sql_scripts.migrations_folder() / "versions").glob("[0-9]*.py"))
_NEXT = f'''
"""One more revision."""

from alembic import op

revision = "9999_next"
down_revision = "{_HEAD}"
run = "after"


def upgrade() -> None:
    op.execute("CREATE TABLE next (x integer)")
'''


@pytest.fixture
async def url(servers: Servers) -> AsyncIterator[str]:
    """An empty database of the owner on the running server."""
    name = new_name("migrate").replace("-", "_")
    superuser = await asyncpg.connect(servers.database_urls["postgres"])
    await superuser.execute(f"CREATE DATABASE {name} OWNER quotagate")
    yield make_url(servers.database_url).set(database=name).render_as_string(hide_password=False)
    await superuser.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await superuser.close()


@pytest.fixture
async def plain_url(servers: Servers) -> AsyncIterator[str]:
    """An empty database whose owner has no further rights."""
    name = new_name("plain").replace("-", "_")
    superuser = await asyncpg.connect(servers.database_urls["postgres"])
    await superuser.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'plain'")
    await superuser.execute(f"CREATE DATABASE {name} OWNER {name}")
    url = make_url(servers.database_url).set(database=name, username=name, password="plain")
    yield url.render_as_string(hide_password=False)
    await superuser.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await superuser.execute(f"DROP ROLE {name}")
    await superuser.close()


@pytest.fixture
def migrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the migrations to add to, in a folder whose name is hard to pass on."""
    folder = tmp_path / "a folder, 100 % hard" / "migrations"
    shutil.copytree(sql_scripts.migrations_folder(), folder)
    monkeypatch.setattr(sql_scripts, "migrations_folder", lambda: folder)
    monkeypatch.setattr(migrate_module, "migrations_folder", lambda: folder)
    return folder


async def _tables(url: str) -> set[str]:
    connection = await asyncpg.connect(url)
    rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    await connection.close()
    return {row["tablename"] for row in rows}


async def _revision(url: str) -> str | None:
    connection = await asyncpg.connect(url)
    revision: str | None = await connection.fetchval("SELECT version_num FROM alembic_version")
    await connection.close()
    return revision


async def test_from_nothing_and_again(url: str) -> None:
    await asyncio.to_thread(migrate, url, {})
    tables = await _tables(url)
    assert {"team", "account", "ledger_entry", "alembic_version"} < tables
    await asyncio.to_thread(migrate, url, {})
    assert await _tables(url) == tables


async def test_several_at_once_take_turns(url: str) -> None:
    await asyncio.gather(*(migrate_async(url, {}) for _ in range(5)))
    assert "account" in await _tables(url)


async def test_a_migration_that_never_ends_makes_the_next_one_give_up(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate_module, "_LOCK_TIMEOUT_S", 0.3)
    holder = await asyncpg.connect(url)
    await holder.execute("SELECT pg_advisory_lock($1)", migrate_module._LOCK_ID)
    with pytest.raises(MigrationBusyError):
        await migrate_async(url, {})
    await holder.close()
    assert await _tables(url) == set()
    await migrate_async(url, {})


def _move(here: Path, there: Path) -> None:
    """Move the revisions from the one on that brought the bounds."""
    for path in here.glob("[0-9]*.py"):
        if path.stem >= "0010":
            path.rename(there / path.name)


async def test_a_row_from_before_its_bound_stops_no_migration(url: str, migrations: Path) -> None:
    _move(migrations / "versions", migrations)
    await migrate_async(url, {})
    connection = await asyncpg.connect(url)
    await connection.execute("INSERT INTO tier (tier_id, rpm, tpm) VALUES ('odd', 1, 10 ^ 15)")
    _move(migrations, migrations / "versions")
    await migrate_async(url, {})
    assert await _revision(url) == _HEAD
    assert await connection.fetchval("SELECT tpm FROM tier") == 10**15
    with pytest.raises(asyncpg.CheckViolationError, match="tier_tpm_check"):
        await connection.execute("INSERT INTO tier (tier_id, rpm, tpm) VALUES ('x', 1, 10 ^ 15)")
    await connection.execute("UPDATE tier SET tpm = 1")
    waiting = "SELECT array_agg(conname::text) FROM pg_constraint WHERE NOT convalidated"
    assert await connection.fetchval(waiting) == ["tier_tpm_check"]
    await connection.close()


async def test_a_new_password_replaces_the_old_one(servers: Servers, url: str) -> None:
    role = "quotagate_tier_cache"
    stays = make_url(servers.database_urls[role])
    await migrate_async(url, {role: "new: \\ 'password' %$"})
    as_role = make_url(url).set(username=role, password="new: \\ 'password' %$")
    connection = await asyncpg.connect(as_role.render_as_string(hide_password=False))
    assert await connection.fetchval("SELECT current_user") == role
    await connection.close()
    # Roles belong to the server; the other tests use the old password.
    await migrate_async(url, {role: str(stays.password)})
    await (await asyncpg.connect(stays.render_as_string(hide_password=False))).close()
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(as_role.render_as_string(hide_password=False))


async def test_the_server_never_sees_a_password(servers: Servers, url: str) -> None:
    """What it stores is what was sent: a verifier."""
    superuser = await asyncpg.connect(servers.database_urls["postgres"])
    for role in SERVICE_ROLES:
        stored = await superuser.fetchval(
            "SELECT rolpassword FROM pg_authid WHERE rolname=$1", role
        )
        assert stored.startswith("SCRAM-SHA-256$")
    await superuser.close()


async def test_before_stops_at_the_first_revision_that_goes_after(
    url: str, migrations: Path
) -> None:
    (migrations / "versions" / "9999_next.py").write_text(_NEXT, encoding="utf-8")
    for _ in range(2):
        await migrate_async(url, {}, Phase.BEFORE)
        assert await _revision(url) == _HEAD
    await migrate_async(url, {})
    assert await _revision(url) == "9999_next"
    await migrate_async(url, {}, Phase.BEFORE)
    assert await _revision(url) == "9999_next"


async def test_a_revision_that_fails_leaves_the_one_before(url: str, migrations: Path) -> None:
    broken = _NEXT.replace("x integer", "x no_such_type")
    (migrations / "versions" / "9999_next.py").write_text(broken, encoding="utf-8")
    with pytest.raises(MigrationError, match="no_such_type"):
        await migrate_async(url, {})
    assert await _revision(url) == _HEAD
    assert "next" not in await _tables(url)


async def test_a_script_that_fails_is_named_and_leaves_nothing(url: str, migrations: Path) -> None:
    grants = migrations / "sql" / "0001_core" / "grants.sql"
    grants.write_text(grants.read_text("utf-8") + "\nGRANT SELECT ON nothing TO PUBLIC;", "utf-8")
    with pytest.raises(ScriptError, match=r'0001_core/grants\.sql: .*"nothing" does not exist'):
        await migrate_async(url, {})
    assert await _tables(url) <= {"alembic_version"}


async def test_a_server_that_does_not_answer_is_an_error_at_once() -> None:
    with pytest.raises(MigrationError):
        await migrate_async("postgresql://quotagate:x@127.0.0.1:1/quotagate", {})


async def test_a_wrong_password_is_an_error(url: str) -> None:
    wrong = make_url(url).set(password="wrong").render_as_string(hide_password=False)
    with pytest.raises(MigrationError, match="password authentication failed"):
        await migrate_async(wrong, {})


async def test_an_owner_without_createrole_needs_the_roles_to_exist(plain_url: str) -> None:
    with pytest.raises(MigrationError, match="permission denied") as raised:
        await migrate_async(plain_url, {"quotagate_settlement": "x"})
    assert "SCRAM" not in "".join(traceback.format_exception(raised.value))
    await migrate_async(plain_url, {})
    assert "account" in await _tables(plain_url)


async def test_a_password_for_a_role_that_is_not_ours_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="not a role of a service: postgres"):
        await migrate_async(url, {"postgres": "x"})
