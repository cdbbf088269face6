"""Edges, admission and tier-cache as processes on real servers; leases live five seconds."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from integration.bus import bus_of, nats_settings
from integration.desk import Desk
from integration.edge_proxy.records import Records
from integration.edge_proxy.world import MODEL, EdgeProcess
from integration.edges.floor import LEASE_S, Floor
from integration.fake_provider.process import FakeProcess
from integration.fake_provider.witness import Witness
from integration.services import ServiceProcess
from redis.asyncio import Redis
from stacks import stack_of_servers

from kit.bus.connection import connection
from quotagate.stack import Servers

PATIENT = {"QUOTAGATE_REDIS_TIMEOUT_MS": "10000", "QUOTAGATE_LEASE_S": str(LEASE_S)}


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Servers of their own: some tiers here are such as the control plane wouldn't write."""
    with stack_of_servers("edges") as stack:
        yield stack.servers


@pytest.fixture(scope="module")
async def desk(servers: Servers) -> AsyncIterator[Desk]:
    desk = Desk(servers)
    await desk.add_price(MODEL)
    yield desk
    await desk.close()


@pytest.fixture(scope="module")
async def floor(
    servers: Servers, desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Floor]:
    """Everything a call touches, once it is ready."""
    folder = tmp_path_factory.mktemp("edges")
    async with contextlib.AsyncExitStack() as stack:
        provider = FakeProcess(folder)
        stack.push_async_callback(provider.stop)
        await provider.start()
        tier_cache = ServiceProcess(servers, "tier-cache", folder, PATIENT)
        admission = ServiceProcess(servers, "admission", folder, PATIENT)
        for process in (tier_cache, admission):
            stack.push_async_callback(process.stop)
            await process.start_ready()
        edge = _edge(servers, folder, provider)
        stack.push_async_callback(edge.stop)
        await edge.start_ready()
        operator = await stack.enter_async_context(
            connection(nats_settings(servers, "operator"), "test of edges")
        )
        redis: Redis = Redis.from_url(servers.redis_url)
        stack.push_async_callback(redis.aclose)
        witness = Witness(provider.base_url)
        stack.push_async_callback(witness.close)
        control_plane = await stack.enter_async_context(bus_of(servers, "control-plane"))
        yield Floor(
            desk=desk,
            provider=provider,
            edge=edge,
            redis=redis,
            records=Records(operator),
            witness=witness,
            control_plane=control_plane,
            admission=admission,
        )


@pytest.fixture
async def others(
    servers: Servers, floor: Floor, tmp_path: Path
) -> AsyncIterator[tuple[EdgeProcess, ...]]:
    """Three more edges, which may be killed."""
    folders = [tmp_path / name for name in ("second", "third", "fourth")]
    edges = tuple(_edge(servers, folder, floor.provider) for folder in folders)
    try:
        await asyncio.gather(*(edge.start_ready() for edge in edges))
        yield edges
    finally:
        await asyncio.gather(*(edge.stop() for edge in edges))


def _edge(servers: Servers, folder: Path, provider: FakeProcess) -> EdgeProcess:
    folder.mkdir(exist_ok=True)
    addresses = {"fake": provider.base_url, "raw": "http://127.0.0.1:1"}
    return EdgeProcess(servers, folder, addresses)
