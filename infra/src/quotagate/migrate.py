"""Brings the database to the newest revision: roles, then migrations."""

import asyncio
from collections.abc import Mapping
from enum import StrEnum

import asyncpg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import Script, ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from quotagate.database_roles import ensure_roles
from quotagate.migration_errors import MigrationBusyError, MigrationError
from quotagate.sql_scripts import migrations_folder

# Any number that nothing else locks in this database.
_LOCK_ID = 0x51554F5441
_LOCK_POLL_S = 0.1
_LOCK_TIMEOUT_S = 60.0
_CONNECT_TIMEOUT_S = 5.0


class Phase(StrEnum):
    """Which revisions to run. Each says whether it goes before or after the new code."""

    BEFORE = "before"
    """Up to the first revision that must wait until no old code runs any more."""
    ALL = "all"


def migrate(database_url: str, role_passwords: Mapping[str, str], phase: Phase = Phase.ALL) -> None:
    """Create the services' roles with their passwords, and run the revisions that are missing.

    Connects as the owner in `database_url` (postgresql://owner:password@host:port/database),
    who needs CREATEROLE unless the roles exist. Repeating it changes nothing but the passwords;
    two at once take turns. Waits for no server: one that doesn't answer is an error. Not to be
    called in a running event loop; use `migrate_async` there.

    Raises:
        MigrationError: the server can't be reached or refused; a revision that failed has left
            nothing behind.
        ValueError: a password for a role that isn't ours, or one that isn't printable ASCII.

    """
    asyncio.run(migrate_async(database_url, role_passwords, phase))


async def migrate_async(
    database_url: str, role_passwords: Mapping[str, str], phase: Phase = Phase.ALL
) -> None:
    """Do what `migrate` does, in a running event loop."""
    url = make_url(database_url).set(drivername="postgresql+asyncpg")
    engine = create_async_engine(
        url, poolclass=NullPool, connect_args={"timeout": _CONNECT_TIMEOUT_S}
    )
    try:
        async with engine.connect() as connection:
            await _take_turn(connection)
            await ensure_roles(connection, role_passwords)
            await connection.commit()
            await connection.run_sync(_upgrade, phase)
    except DBAPIError as error:
        # Only what the server said: the whole text has the statement, and in it a verifier.
        raise MigrationError(str(error.orig)) from error.orig
    except (SQLAlchemyError, asyncpg.PostgresError, CommandError, OSError) as error:
        raise MigrationError(str(error) or type(error).__name__) from error
    finally:
        await engine.dispose()


async def _take_turn(connection: AsyncConnection) -> None:
    """Take the lock that makes migrations of one database take turns; it ends with the session.

    It is polled, because a statement that waits for it holds a snapshot, and an index that is
    built concurrently waits for all snapshots: the two would wait for each other.
    """
    try:
        async with asyncio.timeout(_LOCK_TIMEOUT_S):
            while not await connection.scalar(
                text("SELECT pg_try_advisory_lock(:id)"), {"id": _LOCK_ID}
            ):
                await connection.commit()
                await asyncio.sleep(_LOCK_POLL_S)
    except TimeoutError as error:
        raise MigrationBusyError from error
    await connection.commit()


def _upgrade(connection: Connection, phase: Phase) -> None:
    config = Config()
    # The config is an INI file's inside: a percent sign in the path must be doubled.
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    target = _target(ScriptDirectory.from_config(config), connection, phase)
    connection.rollback()
    if target is not None:
        command.upgrade(config, target)


def _target(directory: ScriptDirectory, connection: Connection, phase: Phase) -> str | None:
    """Return the revision to go to; None where there is nothing to do."""
    current = MigrationContext.configure(connection).get_current_revision()
    target = None
    for script in _pending(directory, current):
        if phase is Phase.BEFORE and script.module.run == "after":
            break
        target = script.revision
    return target


def _pending(directory: ScriptDirectory, current: str | None) -> list[Script]:
    """Return the revisions after `current`, the oldest first."""
    return list(directory.iterate_revisions("head", current or "base"))[::-1]
