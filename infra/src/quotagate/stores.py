"""Where an operator's commands find the stores, and how they look into them.

The environment's variables count, as they do for a service; without them, the local stack's state.

CannotTellError: what a command raises when it can't find out.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import nats.errors
from nats.aio.client import Client
from pydantic import Field
from redis.exceptions import RedisClusterException, RedisError
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from kit import redis
from kit.bus.connection import connection
from kit.errors import NotReadyError
from kit.postgres import CONNECTION_ERRORS
from kit.redis import RedisClient
from kit.settings import NatsSettings, PostgresSettings, RedisSettings, load
from quotagate.stack import Servers, Stack

_CONNECT_TIMEOUT_S = 5.0
_ADDRESSES = ("QUOTAGATE_DATABASE_URL", "QUOTAGATE_REDIS_URL", "QUOTAGATE_NATS_URL")


class CannotTellError(Exception):
    """A store doesn't answer, so nothing can be said about it."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or ""))


class StoreSettings(NatsSettings, RedisSettings, PostgresSettings):
    """Where the stores are, and as whom to look into them."""

    port: int = Field(0, description="Not used.")
    redis_timeout_ms: int = Field(
        5_000, ge=1, description="Milliseconds until a Redis call counts as failed."
    )


def store_settings(folder: Path | None, environment: Mapping[str, str]) -> StoreSettings:
    """Return the settings of the stack in `folder`, or of the environment.

    `folder` None means the environment if it names any store, and else the stack of the default
    folder. A stack is looked into as its operator, who may do everything.

    Raises:
        SettingsError: a variable is wrong.
        StackError: there is no stack in the folder.

    """
    named = any(name in environment or f"{name}_FILE" in environment for name in _ADDRESSES)
    if folder is None and named:
        return load(StoreSettings, environment)
    directory = folder or Path(environment.get("QUOTAGATE_STACK_DIR") or ".quotagate")
    return of_servers(Stack(directory).servers)


def of_servers(servers: Servers) -> StoreSettings:
    """Return the settings by which a stack's operator looks into its stores."""
    return load(
        StoreSettings,
        {
            "QUOTAGATE_NATS_URL": servers.nats_url,
            "QUOTAGATE_NATS_MONITOR_URL": servers.nats_monitor_url,
            "QUOTAGATE_NATS_USER": "operator",
            "QUOTAGATE_NATS_PASSWORD": servers.nats_passwords["operator"],
            "QUOTAGATE_REDIS_URL": servers.redis_url,
            "QUOTAGATE_DATABASE_URL": servers.database_url,
        },
    )


_POSTGRES_ERRORS = (SQLAlchemyError, *CONNECTION_ERRORS)
_NATS_ERRORS = (NotReadyError, nats.errors.Error)
_REDIS_ERRORS = (NotReadyError, RedisError, RedisClusterException)


@contextlib.asynccontextmanager
async def database(settings: PostgresSettings) -> AsyncIterator[AsyncEngine]:
    """Open the database, without a limit on how long a statement may take.

    Raises:
        CannotTellError: in the block, when the database doesn't answer or refuses.

    """
    url = make_url(settings.database_url.get_secret_value()).set(drivername="postgresql+asyncpg")
    engine = create_async_engine(
        url,
        poolclass=NullPool,
        hide_parameters=True,
        connect_args={"timeout": _CONNECT_TIMEOUT_S},
    )
    try:
        with _telling("postgres", *_POSTGRES_ERRORS):
            yield engine
    finally:
        await engine.dispose()


@contextlib.asynccontextmanager
async def snapshot(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Hold one moment of the database, for reading: what is committed later isn't seen.

    Locks nothing that a service needs. As long as it is held, vacuum can't clean up behind it.
    """
    async with engine.connect() as connection, connection.begin():
        await connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))
        # Sorts and joins of many rows go to the server's disk beyond this, and never to ours.
        await connection.execute(text("SET LOCAL work_mem = '64MB'"))
        yield connection


@contextlib.asynccontextmanager
async def bus(settings: NatsSettings) -> AsyncIterator[Client]:
    """Connect to NATS.

    Raises:
        CannotTellError: NATS doesn't answer, also in the block.

    """
    with _telling("nats", *_NATS_ERRORS):
        async with connection(settings, "quotagate") as client:
            yield client


@contextlib.asynccontextmanager
async def cache(settings: RedisSettings) -> AsyncIterator[RedisClient]:
    """Open Redis.

    Raises:
        CannotTellError: in the block, when Redis doesn't answer or refuses.

    """
    client = redis.connect(settings)
    try:
        with _telling("redis", *_REDIS_ERRORS):
            yield client
    finally:
        await client.aclose()


@contextlib.contextmanager
def _telling(store: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn the errors of one store's driver into CannotTellError."""
    try:
        yield
    except errors as error:
        # What the server said; the whole text of SQLAlchemy's error has the statement too.
        words = str(error.orig if isinstance(error, DBAPIError) else error)
        told = words or type(error).__name__
        raise CannotTellError(
            told if told.startswith(f"{store}:") else f"{store}: {told}"
        ) from error
