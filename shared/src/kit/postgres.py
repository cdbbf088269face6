"""A bounded pool to Postgres, and the check that what it commits is durable."""

import asyncpg
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from kit.errors import NotReadyError, UnsafeServerError
from kit.health import CheckResult
from kit.settings import PostgresSettings

# What a lost or refused connection raises below SQLAlchemy.
CONNECTION_ERRORS = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)


def connect(settings: PostgresSettings) -> AsyncEngine:
    """Return an engine whose pool never grows beyond `database_connections`."""
    url = make_url(settings.database_url.get_secret_value()).set(drivername="postgresql+asyncpg")
    return create_async_engine(
        url,
        pool_size=settings.database_connections,
        max_overflow=0,
        pool_timeout=settings.database_timeout_s,
        pool_pre_ping=True,
        # An error's text goes to the log; what a statement held does not.
        hide_parameters=True,
        connect_args={
            "timeout": settings.database_timeout_s,
            "command_timeout": settings.database_timeout_s,
        },
    )


async def check(engine: AsyncEngine) -> None:
    """See that the server answers, and that a commit means synced.

    Raises:
        NotReadyError: no answer.
        UnsafeServerError: `fsync` or `synchronous_commit` is off.

    """
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        try:
            async with engine.connect() as connection:
                value = (await connection.execute(text(f"SHOW {setting}"))).scalar_one()
        except (SQLAlchemyError, *CONNECTION_ERRORS) as error:
            raise NotReadyError(f"postgres: {type(error).__name__}") from error
        if value == "off":
            raise UnsafeServerError(f"postgres: {setting} is off")


async def ping(engine: AsyncEngine) -> CheckResult:
    """Return None if the server answers, else why not."""
    try:
        async with engine.connect() as connection:
            await connection.execute(text("SELECT 1"))
    except (SQLAlchemyError, *CONNECTION_ERRORS) as error:
        return type(error).__name__
    return None
