"""tier-cache's own clients on the real servers, with its rights."""

from collections.abc import AsyncIterator

import pytest
from integration.bus import Bus, bus_of, nats_settings
from integration.desk import Desk
from integration.services import environment
from redis.asyncio import Redis
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from kit import postgres, redis
from kit.bus.connection import connection
from kit.settings import load
from quotagate.stack import Servers
from redis_scripts import RedisScripts
from tier_cache.settings import Settings
from tier_cache.store.waiting import WaitingRecords


@pytest.fixture(scope="session")
def settings(servers: Servers) -> Settings:
    return load(Settings, environment(servers, "tier-cache"))


@pytest.fixture(scope="session")
async def desk(servers: Servers) -> AsyncIterator[Desk]:
    desk = Desk(servers)
    yield desk
    await desk.close()


@pytest.fixture(scope="session")
async def engine(settings: Settings) -> AsyncIterator[AsyncEngine]:
    engine = postgres.connect(settings)
    yield engine
    await engine.dispose()


@pytest.fixture(scope="session")
async def settlement(servers: Servers) -> AsyncIterator[AsyncEngine]:
    """The database as settlement may use it."""
    url = make_url(servers.database_urls["quotagate_settlement"])
    engine = create_async_engine(url.set(drivername="postgresql+asyncpg"))
    yield engine
    await engine.dispose()


@pytest.fixture(scope="session")
async def redis_client(settings: Settings) -> AsyncIterator[redis.RedisClient]:
    """A client with a long time-out, so that a busy machine doesn't fail a test."""
    client = redis.connect(settings.model_copy(update={"redis_timeout_ms": 10_000}))
    yield client
    await client.aclose()


@pytest.fixture(scope="session")
async def scripts(redis_client: redis.RedisClient) -> AsyncIterator[RedisScripts]:
    scripts = RedisScripts(redis_client)
    yield scripts
    await scripts.drain()


@pytest.fixture(scope="session")
async def waiting(servers: Servers) -> AsyncIterator[WaitingRecords]:
    """The stream of records as tier-cache may read it."""
    async with connection(nats_settings(servers, "tier-cache"), "test as tier-cache") as client:
        yield WaitingRecords(client)


@pytest.fixture(scope="session")
async def operator(servers: Servers) -> AsyncIterator[Redis]:
    """A Redis client that may look at everything."""
    client: Redis = Redis.from_url(servers.redis_url)
    yield client
    await client.aclose()


@pytest.fixture
async def control_plane(servers: Servers) -> AsyncIterator[Bus]:
    async with bus_of(servers, "control-plane") as bus:
        yield bus


@pytest.fixture
async def admission(servers: Servers) -> AsyncIterator[Bus]:
    async with bus_of(servers, "admission") as bus:
        yield bus
