"""A server becomes unsafe while the services run: they close, and open again when it is mended."""

import asyncio
from collections.abc import AsyncIterator, Mapping

import httpx
import pytest
from integration.bus import bus_of
from integration.control_plane.process import ControlPlane
from integration.edge_proxy.world import CHAT
from integration.quotagate.wrong_servers import (
    Wrong,
    postgres_setting,
    redis_setting,
    stream_with,
    unsynced_jetstream,
)
from integration.services import ServiceProcess
from integration.tables.rows import new_name
from nats.js.api import StorageType

from contracts.admission import PREFLIGHT, PreflightRequest
from kit.bus.errors import NoResponderError
from quotagate.config_folder import config_folder
from quotagate.stack import Stack

# The true books are a copy of the database that these services write to: it is made before they do.
pytestmark = pytest.mark.usefixtures("true_books")

QUICK = {"QUOTAGATE_RECHECK_S": "0.2"}
Services = Mapping[str, ServiceProcess]

BECOMES_UNSAFE = [
    pytest.param(
        redis_setting("maxmemory-policy", "allkeys-lru"),
        "redis: maxmemory-policy is allkeys-lru, not noeviction",
        {"admission", "tier-cache", "settlement"},
        id="Redis evicts",
    ),
    pytest.param(
        unsynced_jetstream,
        "nats: JetStream acknowledges before it syncs to disk",
        {"edge-proxy", "tier-cache", "settlement"},
        id="NATS comes back with another configuration",
    ),
    pytest.param(
        stream_with(storage=StorageType.MEMORY),
        "stream INFERENCE_RECORDS is kept in memory",
        {"edge-proxy", "settlement"},
        id="a stream is made anew in memory",
    ),
    pytest.param(
        postgres_setting("fsync"),
        "postgres: fsync is off",
        {"settlement", "control-plane"},
        id="Postgres syncs no longer",
    ),
]


@pytest.fixture(scope="module")
async def services(lab: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Services]:
    """Every service, ready."""
    folder = tmp_path_factory.mktemp("services")
    edge = {
        "QUOTAGATE_KEY_PEPPER": "p" * 64,
        "QUOTAGATE_ROUTES_FILE": str(config_folder() / "routes.toml"),
        "QUOTAGATE_FAKE_PROVIDER_URL": "http://127.0.0.1:1",
        "QUOTAGATE_FAKE_PROVIDER_KEY": "fake",
        "QUOTAGATE_DATA_DIR": str(folder / "edge"),
    }
    found: Services = {
        "control-plane": ControlPlane(lab.servers, folder, QUICK),
        "edge-proxy": ServiceProcess(lab.servers, "edge-proxy", folder, QUICK | edge),
        **{
            name: ServiceProcess(lab.servers, name, folder, QUICK)
            for name in ("admission", "tier-cache", "settlement")
        },
    }
    try:
        await asyncio.gather(*(process.start() for process in found.values()))
        await _all_ready(found)
        yield found
    finally:
        for process in found.values():
            await process.stop()


async def _all_ready(services: Services) -> None:
    for process in services.values():
        await process.becomes_ready()


@pytest.mark.parametrize(("wrong", "reason", "concerned"), BECOMES_UNSAFE)
async def test_services_close_and_open_again(
    lab: Stack, services: Services, wrong: Wrong, reason: str, concerned: set[str]
) -> None:
    async with wrong(lab):
        for name in concerned:
            await _says(services[name], reason)
    await _all_ready(services)


async def _says(process: ServiceProcess, reason: str) -> None:
    async with asyncio.timeout(30):
        while (await process.problems()).get("service") != reason:
            await asyncio.sleep(0.02)


async def test_nobody_is_admitted_by_a_redis_that_evicts(lab: Stack, services: Services) -> None:
    request = PreflightRequest(
        team_id=new_name("team"),
        key_id="key",
        inference_id="inference",
        model="model",
        deployments=(),
        deadline_us=2**62,
    )
    async with bus_of(lab.servers, "edge-proxy") as bus:
        async with redis_setting("maxmemory-policy", "volatile-ttl")(lab):
            await services["admission"].becomes_unready("service")
            with pytest.raises(NoResponderError):
                await bus.ask(PREFLIGHT, request)
        await _all_ready(services)


async def test_the_edge_takes_nothing_whose_record_could_be_lost(
    lab: Stack, services: Services
) -> None:
    edge = services["edge-proxy"]
    async with stream_with(storage=StorageType.MEMORY)(lab):
        await edge.becomes_unready("service")
        async with httpx.AsyncClient(base_url=edge.url) as client:
            answer = await client.post(CHAT, json={})
    assert answer.status_code == 503
    await _all_ready(services)


async def test_the_admin_api_takes_nothing_that_a_power_cut_would_undo(
    lab: Stack, services: Services
) -> None:
    control_plane = services["control-plane"]
    assert isinstance(control_plane, ControlPlane)
    async with control_plane.operator() as operator:
        async with postgres_setting("fsync")(lab):
            await control_plane.becomes_unready("service")
            assert (await operator.get("/tiers")).status_code == 503
        await _all_ready(services)
        assert (await operator.get("/tiers")).status_code == 200
