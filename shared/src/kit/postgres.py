"""A bounded pool to Postgres, and the check that what it commits is durable."""

from collections.abc import Mapping
from types import MappingProxyType

import asyncpg
from sqlalchemy import event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import InvalidatePoolError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import PoolProxiedConnection

from kit.errors import NotReadyError
from kit.flaws import Flaw, refuse
from kit.health import CheckResult
from kit.settings import PostgresSettings

# What a lost or refused connection raises below SQLAlchemy.
CONNECTION_ERRORS = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)

_DURABLE: Mapping[str, str] = MappingProxyType(
    {
        "fsync": "A power cut loses or damages what was committed: charges, credits.",
        "synchronous_commit": "A crash loses what was committed, and the stream has forgotten it.",
        "full_page_writes": "A power cut leaves torn pages that no log can repair.",
    }
)
_SETTINGS = text("SELECT name, setting FROM pg_settings WHERE name = ANY (CAST(:names AS text[]))")


def connect(settings: PostgresSettings, *, plan_each_time: bool = False) -> AsyncEngine:
    """Return an engine whose pool never grows beyond `database_connections`.

    The server keeps the plan of a prepared statement until the tables' statistics change. One that
    was made while a table was empty may read all of it by then. `plan_each_time` is for statements
    that are few and each concern many rows: planning anew costs them little.

    A connection that the server has closed is replaced when it is asked for. One that is only
    half open is not: whoever uses it waits for `database_timeout_s`, as a ping before would have.
    """
    url = make_url(settings.database_url.get_secret_value()).set(drivername="postgresql+asyncpg")
    engine = create_async_engine(
        url,
        pool_size=settings.database_connections,
        max_overflow=0,
        pool_timeout=settings.database_timeout_s,
        # An error's text goes to the log; what a statement held does not.
        hide_parameters=True,
        connect_args={
            "timeout": settings.database_timeout_s,
            "command_timeout": settings.database_timeout_s,
            "server_settings": {"plan_cache_mode": "force_custom_plan"} if plan_each_time else {},
        },
    )
    event.listen(engine.sync_engine, "checkout", _refuse_closed)
    return engine


def one_statement_each(engine: AsyncEngine) -> AsyncEngine:
    """Return the same pool, for statements that are a transaction by themselves.

    None has a BEGIN and a COMMIT around it, which are round trips of their own.
    """
    return engine.execution_options(isolation_level="AUTOCOMMIT")


def _refuse_closed(
    _dbapi_connection: object, _record: object, proxy: PoolProxiedConnection
) -> None:
    """Have the pool open a new connection in the place of one that is known to be closed.

    The driver hears of it as soon as the server or the kernel says so. The pool's own ping asks the
    server instead, in a transaction: three round trips before every statement.
    """
    driver = proxy.driver_connection
    if isinstance(driver, asyncpg.Connection) and driver.is_closed():
        raise InvalidatePoolError("closed by the server")


async def check(engine: AsyncEngine) -> None:
    """See that the server answers, and that a commit means synced.

    Raises:
        NotReadyError: no answer.
        UnsafeServerError: one of the `flaws`.

    """
    try:
        async with engine.connect() as connection:
            settings = await durability(connection)
    except (SQLAlchemyError, *CONNECTION_ERRORS) as error:
        raise NotReadyError(f"postgres: {type(error).__name__}") from error
    refuse(flaws(settings))


async def durability(connection: AsyncConnection) -> dict[str, str]:
    """Return what `flaws` judges, as this session has it."""
    rows = await connection.execute(_SETTINGS, {"names": list(_DURABLE)})
    return {row.name: row.setting for row in rows}


def flaws(settings: Mapping[str, str]) -> list[Flaw]:
    """Return what is wrong with a server, by its `pg_settings` as one of our sessions has them."""
    return [
        Flaw(
            what=f"postgres: {name} is off",
            why=why,
            mend=f"ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf(); and see that no role or"
            " database overrides it.",
        )
        for name, why in _DURABLE.items()
        if settings.get(name) == "off"
    ]


async def ping(engine: AsyncEngine) -> CheckResult:
    """Return None if the server answers, else why not."""
    try:
        async with engine.connect() as connection:
            await connection.execute(text("SELECT 1"))
    except (SQLAlchemyError, *CONNECTION_ERRORS) as error:
        return type(error).__name__
    return None
