"""Start and stop: not ready before it can keep its word, and gone only after it has."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from integration.edge_proxy.stand_ins import Latch, allow
from integration.edge_proxy.world import EdgeProcess, eventually
from integration.edge_proxy.world import world as new_world

from contracts.admission import PreflightReply, PreflightRequest
from contracts.inference import Outcome
from quotagate.stack import Stack

STREAM = {"stream": True}


async def test_an_edge_that_waits_for_others(module_servers: Stack, tmp_path: Path) -> None:
    servers = module_servers.servers
    async with new_world(servers, tmp_path, alone=True) as world:
        assert "admission" in await world.edge.becomes_unready("admission")
        async with world.stand_ins.tier_cache(servers):
            team = world.team()
            answer = await world.ask(team)
            assert answer.status_code == 503
            message = answer.json()["error"]["message"]
            assert message == "Rate limit check is temporarily unavailable."
            assert answer.headers["retry-after"] == "1"
            async with world.stand_ins.admission(servers):
                await world.edge.becomes_ready()
                assert (await world.ask(team)).status_code == 200
            await world.edge.becomes_unready("admission")
            assert (await world.ask(team)).status_code == 503
        assert await world.hits(team) == 1


async def test_keys_in_use_outlive_tier_cache(module_servers: Stack, tmp_path: Path) -> None:
    servers = module_servers.servers
    async with new_world(
        servers, tmp_path, alone=True, settings={"QUOTAGATE_KEY_FRESH_S": "0.01"}
    ) as world:
        known, unknown = world.team(), world.team()
        async with world.stand_ins.admission(servers):
            async with world.stand_ins.tier_cache(servers):
                await world.edge.becomes_ready()
                assert (await world.ask(known)).status_code == 200
            assert (await world.ask(known)).status_code == 200
            answer = await world.ask(unknown)
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "1"


async def test_a_bus_that_comes_later(module_servers: Stack, tmp_path: Path) -> None:
    await asyncio.to_thread(module_servers.stop, "nats")
    try:
        # The world's own connection needs the bus, so this edge is started by hand.
        async with contextlib.AsyncExitStack() as stack:
            addresses = dict.fromkeys(("fake", "raw"), "http://127.0.0.1:1")
            edge = EdgeProcess(module_servers.servers, tmp_path, addresses)
            stack.push_async_callback(edge.stop)
            await edge.start()

            async def says_so() -> bool:
                return (await edge.problems()).get("service", "").startswith("nats: ")

            await eventually(says_so)
            await asyncio.to_thread(module_servers.start, "nats")
            await edge.becomes_unready("admission")
    finally:
        await asyncio.to_thread(module_servers.start, "nats")


async def test_a_silent_admission_is_a_503_in_time(module_servers: Stack, tmp_path: Path) -> None:
    async with new_world(
        module_servers.servers, tmp_path, settings={"QUOTAGATE_PREFLIGHT_TIMEOUT_MS": "250"}
    ) as world:
        team, latch = world.team(), Latch()

        async def silent(request: PreflightRequest) -> PreflightReply:
            await latch.wait()
            return await allow(request)

        world.stand_ins.on_preflight[team.team_id] = silent
        answer = await world.ask(team)
        assert answer.status_code == 503
        assert await world.hits(team) == 0
        latch.open.set()


async def test_too_many_at_once(module_servers: Stack, tmp_path: Path) -> None:
    async with new_world(
        module_servers.servers, tmp_path, settings={"QUOTAGATE_MAX_IN_FLIGHT": "2"}
    ) as world:
        team = world.team()
        gated = [asyncio.create_task(world.ask(team, gate=team.team_id)) for _ in range(2)]
        await world.witness.requests(2, marker=team.team_id)
        answer = await world.ask(world.team())
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        # Only inferences are counted: what is free stays free.
        assert (await world.http.get("/v1/models", headers=team.headers)).status_code == 200
        await world.witness.open_gate(team.team_id)
        assert [(await call).status_code for call in gated] == [200, 200]
        assert (await world.ask(world.team())).status_code == 200


@pytest.mark.parametrize("more", [{}, STREAM], ids=["whole", "stream"])
async def test_what_is_in_flight_is_finished(
    module_servers: Stack, tmp_path: Path, more: Mapping[str, Any]
) -> None:
    async with new_world(module_servers.servers, tmp_path) as world:
        team = world.team()
        asking = asyncio.create_task(world.ask(team, more=more, gate=team.team_id))
        await world.witness.requests(1, marker=team.team_id)
        world.edge.terminate()

        async def refuses() -> bool:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", world.edge.port)
            except ConnectionRefusedError:
                return True
            writer.close()
            return False

        await eventually(refuses)
        await world.witness.open_gate(team.team_id)
        answer = await asking
        assert answer.status_code == 200
        assert (b"[DONE]" in answer.content) == bool(more)
        assert await world.edge.ended() == -signal.SIGTERM
        assert (await world.records.one(team.team_id)).outcome is Outcome.SUCCEEDED
        assert list(world.edge.data_dir.glob("*/spool/*")) == []


async def test_a_drain_is_finished(module_servers: Stack, tmp_path: Path) -> None:
    async with new_world(module_servers.servers, tmp_path) as world:
        team = world.team()
        asking = asyncio.create_task(world.ask(team, gate=team.team_id, completion_tokens=50))
        await world.witness.requests(1, marker=team.team_id)
        asking.cancel()
        await asyncio.wait([asking])
        world.edge.terminate()
        await world.witness.open_gate(team.team_id)
        assert await world.edge.ended() == -signal.SIGTERM
        record = await world.records.one(team.team_id)
        assert (record.outcome, record.client_gone) == (Outcome.SUCCEEDED, True)
        assert record.usage is not None


@pytest.mark.parametrize(
    ("more", "knobs", "outcome"),
    [
        pytest.param({}, {"hang": True}, Outcome.FAILED, id="whole"),
        pytest.param(STREAM, {"hang_after_chunks": 2}, Outcome.ABORTED, id="stream"),
    ],
)
async def test_a_provider_that_does_not_end_is_not_waited_for(
    module_servers: Stack,
    tmp_path: Path,
    more: Mapping[str, Any],
    knobs: Mapping[str, Any],
    outcome: Outcome,
) -> None:
    async with new_world(
        module_servers.servers, tmp_path, settings={"QUOTAGATE_GRACE_S": "1"}
    ) as world:
        team = world.team()
        asking = asyncio.create_task(world.ask(team, more=more, **knobs))
        await world.witness.requests(1, marker=team.team_id)
        world.edge.terminate()
        assert await world.edge.ended() == -signal.SIGTERM
        await asyncio.wait([asking])
        record = await world.records.one(team.team_id)
        assert (record.outcome, record.usage) == (outcome, None)


async def test_replicas_share_a_data_directory_and_inherit(
    module_servers: Stack, tmp_path: Path
) -> None:
    """What a dead edge leaves is taken over by one that lives: nobody has to restart it."""
    servers = module_servers.servers
    shared = {
        "QUOTAGATE_DATA_DIR": str(tmp_path / "shared"),
        "QUOTAGATE_ORPHAN_CHECK_S": "0.2",
    }
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    async with (
        new_world(servers, folders[0], settings=shared) as one,
        new_world(servers, folders[1], alone=True, settings=shared) as two,
    ):
        await two.edge.becomes_ready()
        assert len(list((tmp_path / "shared").iterdir())) == 2
        team = one.team()
        asking = asyncio.create_task(one.ask(team, gate=team.team_id))
        await one.witness.requests(1, marker=team.team_id)
        one.edge.kill()
        await asyncio.wait([asking])
        assert (await two.records.one(team.team_id)).outcome is Outcome.UNKNOWN
        assert len(list((tmp_path / "shared").iterdir())) == 1


@pytest.mark.parametrize(
    ("settings", "routes", "said"),
    [
        pytest.param({}, "", "QUOTAGATE_KEY_PEPPER: Field required", id="no pepper"),
        pytest.param(
            {"QUOTAGATE_KEY_PEPPER": "a pepper for these tests"},
            "[providers]\n[models]\nunknown = 1\n",
            "models.unknown",
            id="wrong routes",
        ),
        pytest.param(
            {"QUOTAGATE_KEY_PEPPER": "a pepper for these tests", "QUOTAGATE_HAND_OFF_S": "0"},
            "",
            "QUOTAGATE_HAND_OFF_S",
            id="no time at all",
        ),
        pytest.param(
            {
                "QUOTAGATE_KEY_PEPPER": "a pepper for these tests",
                "QUOTAGATE_POLICIES_FILE": "/nowhere/policies.toml",
            },
            "[providers]\n[models]\n",
            "policies: can't be read: FileNotFoundError",
            id="no policies where they should be",
        ),
        pytest.param(
            {
                "QUOTAGATE_KEY_PEPPER": "a pepper for these tests",
                "QUOTAGATE_TRUSTED_PROXIES": "10.0.0.0/8,10.0.0.1/33",
            },
            "",
            "QUOTAGATE_TRUSTED_PROXIES: Input is not a valid IPv4 network",
            id="no network",
        ),
    ],
)
async def test_a_start_that_fails_says_why(
    tmp_path: Path, settings: dict[str, str], routes: str, said: str
) -> None:
    (tmp_path / "routes.toml").write_text(routes, encoding="utf-8")
    paths = {
        "QUOTAGATE_ROUTES_FILE": str(tmp_path / "routes.toml"),
        "QUOTAGATE_DATA_DIR": str(tmp_path / "data"),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "edge_proxy"),
        env=paths | settings,
        stderr=asyncio.subprocess.PIPE,
    )
    _, stderr = await process.communicate()
    assert process.returncode == 2
    assert said in stderr.decode()
    assert "Traceback" not in stderr.decode()


async def test_strangers_take_no_place(module_servers: Stack, tmp_path: Path) -> None:
    settings = {"QUOTAGATE_MAX_IN_FLIGHT": "1"}
    async with new_world(module_servers.servers, tmp_path, settings=settings) as world:
        strangers = []
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", world.edge.port)
            writer.write(
                b"POST /v1/chat/completions HTTP/1.1\r\nhost: e\r\ncontent-length: 9\r\n\r\n"
            )
            assert b" 401 " in await reader.readuntil(b"\r\n")
            strangers.append(writer)
        assert (await world.ask(world.team())).status_code == 200
        for writer in strangers:
            writer.close()
