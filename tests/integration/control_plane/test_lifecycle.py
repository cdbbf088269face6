"""Starting, stopping, and going without a server for a while."""

import asyncio
import signal
from pathlib import Path

import httpx
from integration.control_plane.opened import credit, open_team, refused, told
from integration.control_plane.process import running

from quotagate.stack import Servers, Stack

NOWHERE = {"QUOTAGATE_NATS_URL": "nats://127.0.0.1:1"}


async def test_it_stops_when_told(servers: Servers, tmp_path: Path) -> None:
    async with running(servers, tmp_path) as process:
        await process.becomes_ready()
        process.signal(signal.SIGTERM)
        # uvicorn passes the signal on once it has stopped in order.
        assert await process.ended() in {0, -signal.SIGTERM}
        assert "Application shutdown complete" in process.log()
        assert "error" not in {
            line.split('"level":"')[-1][:5] for line in process.log().split("\n")
        }


async def test_it_publishes_before_it_leaves(servers: Servers, tmp_path: Path) -> None:
    async with running(servers, tmp_path) as process, process.operator() as operator:
        await process.becomes_ready()
        entry = await credit(operator, await open_team(operator))
        process.signal(signal.SIGTERM)
        await process.ended()
    async with running(servers, tmp_path, NOWHERE) as process, process.operator() as operator:
        await process.becomes_unready("nats")
        event = await told(operator.get(f"/events/{entry['event_id']}"))
    assert event["published_at"] is not None


async def test_without_postgres_it_says_so_and_comes_back(
    own_servers: Stack, tmp_path: Path
) -> None:
    servers = own_servers.servers
    async with running(servers, tmp_path) as process, process.operator() as operator:
        await process.becomes_ready()
        team_id = await open_team(operator)
        await asyncio.to_thread(own_servers.stop, "postgres")
        assert set(await process.becomes_unready("postgres")) == {"postgres"}
        get = await operator.get(f"/teams/{team_id}")
        assert (get.status_code, get.headers["retry-after"]) == (503, "1")
        await refused(operator.get("/tiers"), 503, "service_unavailable")
        new = {"amount": "1", "reason": "r"}
        post = operator.post(f"/teams/{team_id}/credits", json=new)
        await refused(post, 503, "service_unavailable")
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"{process.url}/health/live")).status_code == 200
        await asyncio.to_thread(own_servers.start, "postgres")
        await process.becomes_ready()
        assert (await credit(operator, team_id))["account_version"] == 1


async def test_it_starts_before_its_servers(own_servers: Stack, tmp_path: Path) -> None:
    for server in ("postgres", "nats"):
        await asyncio.to_thread(own_servers.stop, server)
    async with running(own_servers.servers, tmp_path) as process, process.operator() as operator:
        await process.becomes_unready("service")
        await asyncio.to_thread(own_servers.start, "postgres")
        await process.becomes_unready("nats")
        entry = await credit(operator, await open_team(operator))
        await asyncio.to_thread(own_servers.start, "nats")
        await process.becomes_ready()
        async with asyncio.timeout(15):
            path = f"/events/{entry['event_id']}"
            while (await told(operator.get(path)))["published_at"] is None:
                await asyncio.sleep(0.02)
