"""Settlement's own clients on servers of these tests alone, with its rights.

Settlement charges whatever waits and looks at all that is cached, so what other tests leave behind
would be its work here.
"""

from collections.abc import AsyncIterator, Iterator

import pytest
from integration.services import environment
from integration.settlement.books import Books
from integration.settlement.team import CallingTeam
from integration.settlement.world import World, world_of
from nats.aio.client import Client
from sqlalchemy.ext.asyncio import AsyncEngine
from stacks import stack_of_servers

from kit import postgres, redis
from kit.bus.connection import connection
from kit.settings import load
from quotagate.stack import Servers, Stack
from redis_scripts import RedisScripts
from settlement.handlers.backlog import Backlog
from settlement.handlers.settle import Settle
from settlement.settings import Settings
from settlement.store.accounts import AccountStore
from settlement.store.balances import BalanceCache
from settlement.store.prices import PriceBook
from settlement.store.records import RecordStore


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Servers with the records, messages and balances of these tests only."""
    with stack_of_servers("settlement") as stack:
        yield stack.servers


@pytest.fixture(scope="session")
def second_stack() -> Iterator[Stack]:
    """Servers to stop and to freeze, whose stream may be emptied; each test leaves them working."""
    with stack_of_servers("settlement-second") as stack:
        yield stack


@pytest.fixture(scope="session")
def settings(servers: Servers) -> Settings:
    return load(Settings, environment(servers, "settlement"))


@pytest.fixture(scope="session")
async def world(servers: Servers) -> AsyncIterator[World]:
    async with world_of(servers) as world:
        yield world


@pytest.fixture(scope="session")
def books(world: World) -> Books:
    return world.books


@pytest.fixture
async def team(world: World) -> CallingTeam:
    return await world.open_team()


@pytest.fixture(scope="session")
async def client(settings: Settings) -> AsyncIterator[Client]:
    """The bus with settlement's rights."""
    async with connection(settings, "settlement in a test") as client:
        yield client


@pytest.fixture(scope="session")
async def engine(settings: Settings) -> AsyncIterator[AsyncEngine]:
    engine = postgres.connect(settings)
    yield engine
    await engine.dispose()


@pytest.fixture(scope="session")
async def balances(settings: Settings) -> AsyncIterator[BalanceCache]:
    """The balance cache with a long time-out, so that a busy machine doesn't fail a test."""
    client = redis.connect(settings.model_copy(update={"redis_timeout_ms": 10_000}))
    scripts = RedisScripts(client)
    yield BalanceCache(client, scripts)
    await scripts.drain()
    await client.aclose()


@pytest.fixture
def records(engine: AsyncEngine) -> RecordStore:
    return RecordStore(engine)


@pytest.fixture
def accounts(engine: AsyncEngine) -> AccountStore:
    return AccountStore(engine, PriceBook())


@pytest.fixture
def settle(
    records: RecordStore, accounts: AccountStore, balances: BalanceCache, settings: Settings
) -> Settle:
    return Settle(records, accounts, balances, Backlog(), settings)


@pytest.fixture
def small(settings: Settings) -> Settings:
    """Batches smaller than what the tests settle."""
    return settings.model_copy(update={"settle_batch_records": 3, "settle_batch_accounts": 2})
