"""The pool to a real Postgres: what it asks the server, and what it does when that went away."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from kit import postgres
from kit.postgres import one_statement_each
from kit.settings import PostgresSettings, load
from quotagate.stack import Servers

_ONE = text("SELECT 1")


@pytest.fixture
async def engine(servers: Servers) -> AsyncIterator[AsyncEngine]:
    """A pool of two connections."""
    engine = postgres.connect(
        load(
            PostgresSettings,
            {
                "QUOTAGATE_PORT": "0",
                "QUOTAGATE_DATABASE_URL": servers.database_url,
                "QUOTAGATE_DATABASE_CONNECTIONS": "2",
            },
        )
    )
    yield engine
    await engine.dispose()


async def _driver(connection: AsyncConnection) -> asyncpg.Connection:
    driver = (await connection.get_raw_connection()).driver_connection
    assert isinstance(driver, asyncpg.Connection)
    return driver


async def _pids(engine: AsyncEngine) -> list[int]:
    """Return the server's processes of all connections of the pool."""
    async with engine.connect() as one, engine.connect() as other:
        return [(await _driver(each)).get_server_pid() for each in (one, other)]


async def _asked_around(engine: AsyncEngine) -> list[str]:
    """Return what the server is asked besides a statement on a connection that was used before.

    The driver's own log leaves out statements that are prepared, as all of ours are.
    """
    asked: list[str] = []
    async with engine.connect() as connection:
        await connection.execute(_ONE)
        driver = await _driver(connection)
        driver.add_query_logger(lambda record: asked.append(record.query))

    asked.clear()
    async with engine.begin() as connection:
        assert await _driver(connection) is driver
        await connection.execute(_ONE)
    return [each.rstrip(";").split()[0] for each in asked]


async def test_a_single_statement_is_all_that_the_server_is_asked(engine: AsyncEngine) -> None:
    assert await _asked_around(one_statement_each(engine)) == []


async def test_a_transaction_begins_and_commits_and_asks_nothing_before(
    engine: AsyncEngine,
) -> None:
    assert await _asked_around(engine) == ["BEGIN", "COMMIT"]


async def test_connections_that_the_server_closed_are_replaced_unnoticed(
    engine: AsyncEngine, servers: Servers
) -> None:
    before = await _pids(engine)
    administrator = await asyncpg.connect(servers.database_url)
    try:
        for pid in before:
            assert await administrator.fetchval("SELECT pg_terminate_backend($1, 10000)", pid)
    finally:
        await administrator.close()
    await asyncio.sleep(0.05)  # the loop hears of it

    async with engine.connect() as connection:
        assert await connection.scalar(_ONE) == 1

    assert not set(await _pids(engine)) & set(before)


async def test_a_connection_that_broke_in_use_takes_the_others_along(
    engine: AsyncEngine,
) -> None:
    before = await _pids(engine)

    with pytest.raises(DBAPIError, match=r"terminat|clos"):
        async with engine.connect() as connection:
            await connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    assert not set(await _pids(engine)) & set(before)
