"""Settlement's own clients on the real servers, with its rights."""

from collections.abc import AsyncIterator, Awaitable, Callable

import nats
import pytest
from integration.bus import bus_of
from integration.desk import Desk
from integration.services import environment
from integration.settlement.books import Books
from integration.settlement.team import CallingTeam
from integration.tables.rows import new_name
from nats.aio.client import Client
from redis.asyncio import Redis
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from kit import postgres, redis
from kit.bus.connection import connection
from kit.settings import load
from quotagate.stack import Servers
from redis_scripts import RedisScripts
from settlement.handlers.backlog import Backlog
from settlement.handlers.settle import Settle
from settlement.settings import Settings
from settlement.store.accounts import AccountStore
from settlement.store.balances import BalanceCache
from settlement.store.prices import PriceBook
from settlement.store.records import RecordStore

OpenTeam = Callable[[], Awaitable[CallingTeam]]


@pytest.fixture(scope="session")
def settings(servers: Servers) -> Settings:
    return load(Settings, environment(servers, "settlement"))


@pytest.fixture(scope="session")
async def desk(servers: Servers) -> AsyncIterator[Desk]:
    desk = Desk(servers)
    yield desk
    await desk.close()


@pytest.fixture(scope="session")
async def books(servers: Servers) -> AsyncIterator[Books]:
    engine = create_async_engine(
        make_url(servers.database_url).set(drivername="postgresql+asyncpg")
    )
    yield Books(engine)
    await engine.dispose()


@pytest.fixture(scope="session")
async def engine(settings: Settings) -> AsyncIterator[AsyncEngine]:
    engine = postgres.connect(settings)
    yield engine
    await engine.dispose()


@pytest.fixture(scope="session")
async def operator(servers: Servers) -> AsyncIterator[Redis]:
    """A Redis client that may look at everything."""
    client: Redis = Redis.from_url(servers.redis_url)
    yield client
    await client.aclose()


@pytest.fixture(scope="session")
async def balances(settings: Settings) -> AsyncIterator[BalanceCache]:
    """The balance cache with a long time-out, so that a busy machine doesn't fail a test."""
    client = redis.connect(settings.model_copy(update={"redis_timeout_ms": 10_000}))
    scripts = RedisScripts(client)
    yield BalanceCache(client, scripts)
    await scripts.drain()
    await client.aclose()


@pytest.fixture(scope="session")
async def client(settings: Settings) -> AsyncIterator[Client]:
    """The bus with settlement's rights."""
    async with connection(settings, "settlement in a test") as client:
        yield client


@pytest.fixture(scope="session")
async def nats_operator(servers: Servers) -> AsyncIterator[Client]:
    client = await nats.connect(
        servers.nats_url, user="operator", password=servers.nats_passwords["operator"]
    )
    yield client
    await client.close()


@pytest.fixture
async def open_team(servers: Servers, desk: Desk, nats_operator: Client) -> AsyncIterator[OpenTeam]:
    """Opens teams with $10 whose model costs $1 per million tokens."""
    async with bus_of(servers, "edge-proxy") as edge:

        async def open_one() -> CallingTeam:
            team_id = await desk.open_team(balance_usd="10")
            price_id = await desk.add_price(new_name("model"))
            return CallingTeam(team_id, price_id, edge, nats_operator)

        yield open_one


@pytest.fixture
async def team(open_team: OpenTeam) -> CallingTeam:
    return await open_team()


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
