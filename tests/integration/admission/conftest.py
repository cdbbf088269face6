"""admission and tier-cache as processes on the real servers, spoken to as the edge speaks."""

from collections.abc import AsyncIterator

import pytest
from integration.admission.edge import Edge
from integration.bus import Bus, bus_of
from integration.desk import Desk
from integration.services import ServiceProcess
from integration.tables.rows import new_name
from redis.asyncio import Redis

from quotagate.stack import Servers

# A busy machine doesn't fail a test that isn't about time.
PATIENT = {"QUOTAGATE_REDIS_TIMEOUT_MS": "10000"}


@pytest.fixture(scope="module")
async def desk(servers: Servers) -> AsyncIterator[Desk]:
    desk = Desk(servers)
    yield desk
    await desk.close()


@pytest.fixture(scope="module")
async def model(desk: Desk) -> str:
    """A model that costs one dollar per million tokens of every class."""
    model = new_name("model")
    await desk.add_price(model)
    return model


@pytest.fixture(scope="module")
async def admission(
    servers: Servers, model: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ServiceProcess]:
    """Admission, once it has loaded the model's price; tier-cache is there as well."""
    folder = tmp_path_factory.mktemp("services")
    tier_cache = ServiceProcess(servers, "tier-cache", folder, PATIENT)
    admission = ServiceProcess(servers, "admission", folder, PATIENT)
    try:
        await tier_cache.start_ready()
        await admission.start_ready()
        yield admission
    finally:
        await admission.stop()
        await tier_cache.stop()


@pytest.fixture(scope="module")
async def edge(servers: Servers, admission: ServiceProcess, model: str) -> AsyncIterator[Edge]:
    """Asks admission with the edge's rights; admission runs."""
    async with bus_of(servers, "edge-proxy") as bus:
        yield Edge(bus, model)


@pytest.fixture(scope="module")
async def control_plane(servers: Servers) -> AsyncIterator[Bus]:
    async with bus_of(servers, "control-plane") as bus:
        yield bus


@pytest.fixture(scope="module")
async def operator(servers: Servers) -> AsyncIterator[Redis]:
    """A Redis client that may look at everything."""
    client: Redis = Redis.from_url(servers.redis_url)
    yield client
    await client.aclose()
