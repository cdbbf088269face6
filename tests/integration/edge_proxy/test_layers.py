"""Layers by address at a real edge: failures and connections are refused before any lookup."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from integration.edge_proxy.world import CHAT, MESSAGES, MODEL, World, eventually
from integration.edge_proxy.world import world as new_world

from kit.keys import new_key
from quotagate.stack import Stack

BODY = {"model": MODEL, "messages": MESSAGES}
FEW = {"QUOTAGATE_MAX_AUTH_FAILURES_PER_ADDRESS": "3"}
BEHIND_PROXIES = {**FEW, "QUOTAGATE_TRUSTED_PROXIES": "127.0.0.0/8"}


@pytest.fixture
async def guarded(module_servers: Stack, tmp_path: Path) -> AsyncIterator[World]:
    async with new_world(module_servers.servers, tmp_path, settings=BEHIND_PROXIES) as world:
        yield world


async def knock(world: World, key: str | None, address: str, path: str = CHAT) -> httpx.Response:
    headers = {"x-forwarded-for": f"198.51.100.9, {address}"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    return await world.http.post(path, json=BODY, headers=headers)


def foreign() -> str:
    """Return a key that is well formed, and nobody's."""
    return new_key("another pepper").text


async def test_after_too_many_failures_nothing_is_looked_up(guarded: World) -> None:
    statuses = [(await knock(guarded, foreign(), "203.0.113.7")).status_code for _ in range(3)]
    assert statuses == [401] * 3
    looked_up = len(guarded.stand_ins.lookups)
    answers = [await knock(guarded, key, "203.0.113.7") for key in (foreign(), None, "nonsense")]
    for answer in answers:
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (429, "too_many_failures")
        assert answer.headers["x-ratelimit-reason"] == "failed_authentications"
        # Three a minute: the next may come when a third of a minute is over.
        assert 1 <= int(answer.headers["retry-after"]) <= 20
        assert error["details"]["scope"] == "address"
        assert (error["details"]["limit"], error["details"]["used"]) == (3, 3)
        assert error["details"]["resets_at"].endswith("Z")
    assert len(guarded.stand_ins.lookups) == looked_up
    sample = 'quotagate_limited_total{reason="failed_authentications"}'
    assert await guarded.edge.metric(sample) == 3
    # Who comes from elsewhere, or from another /64, is none of them.
    assert (await knock(guarded, foreign(), "203.0.113.8")).status_code == 401


async def test_a_key_known_to_be_good_goes_on_from_a_blocked_address(guarded: World) -> None:
    known, new = guarded.team(), guarded.team()
    address = "2001:db8::1"
    assert (await knock(guarded, known.key, address)).status_code == 200
    for number in range(3):
        assert (await knock(guarded, None, f"2001:db8::{number}")).status_code == 401
    assert (await knock(guarded, known.key, address)).status_code == 200
    # Its id with another secret is no good key; nor can an unknown one be told from a guess.
    wrong = new_key("another pepper")
    guarded.stand_ins.keys[wrong.key_id] = guarded.stand_ins.keys[known.key_id]
    assert (await knock(guarded, wrong.text, address)).status_code == 429
    assert (await knock(guarded, new.key, address)).status_code == 429
    assert (await knock(guarded, new.key, "2001:db8:0:1::1")).status_code == 200


async def test_a_header_of_nobody_we_trust_moves_nothing(
    module_servers: Stack, tmp_path: Path
) -> None:
    async with new_world(module_servers.servers, tmp_path, settings=FEW) as world:
        answers = [await knock(world, None, f"203.0.113.{number}") for number in range(4)]
    assert [answer.status_code for answer in answers] == [401, 401, 401, 429]


async def test_connections_of_one_address(module_servers: Stack, tmp_path: Path) -> None:
    settings = {"QUOTAGATE_MAX_CONNECTIONS_PER_ADDRESS": "3"}
    async with (
        new_world(module_servers.servers, tmp_path, settings=settings) as world,
        _pool(world) as pool,
    ):
        team = world.team()
        answers = [await client.get("/v1/models", headers=team.headers) for client in pool[:6]]
        # Others of this test may have connections as well.
        statuses = [answer.status_code for answer in answers]
        assert statuses[0] == 200
        assert statuses[-1] == 429
        refused = answers[-1]
        assert refused.headers["x-ratelimit-reason"] == "connections"
        assert refused.headers["connection"] == "close"
        assert refused.headers["retry-after"] == "1"
        error = refused.json()["error"]
        assert error["code"] == "too_many_connections"
        assert (error["details"]["limit"], error["details"]["used"]) == (3, 3)
        # Refused connections are closed, and room comes back with those that leave.
        for client in pool[:6]:
            await client.aclose()

        async def has_room() -> bool:
            async with httpx.AsyncClient(base_url=world.edge.url) as client:
                answer = await client.get("/v1/models", headers=team.headers)
            return answer.status_code == 200

        await eventually(has_room)


async def test_twice_as_many_connections_are_cut(module_servers: Stack, tmp_path: Path) -> None:
    settings = {"QUOTAGATE_MAX_CONNECTIONS_PER_ADDRESS": "2"}
    async with new_world(module_servers.servers, tmp_path, settings=settings) as world:
        held = [await asyncio.open_connection("127.0.0.1", world.edge.port) for _ in range(4)]
        reader, writer = await asyncio.open_connection("127.0.0.1", world.edge.port)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        for _, each in [*held, (reader, writer)]:
            each.close()
        await eventually(lambda: _is_cut(world))


async def _is_cut(world: World) -> bool:
    return await world.edge.metric("quotagate_connections_cut_total") >= 1


async def test_new_connections_of_one_address(module_servers: Stack, tmp_path: Path) -> None:
    settings = {"QUOTAGATE_MAX_NEW_CONNECTIONS_PER_ADDRESS": "1"}
    async with new_world(module_servers.servers, tmp_path, settings=settings) as world:
        team = world.team()
        answers = []
        for _ in range(20):
            async with httpx.AsyncClient(base_url=world.edge.url) as client:
                answers.append(await client.get("/v1/models", headers=team.headers))
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused
        assert {answer.headers["x-ratelimit-reason"] for answer in refused} == {"connection_rate"}
        assert {answer.headers["retry-after"] for answer in refused} == {"1"}


async def test_connections_of_a_trusted_proxy_are_not_counted(
    module_servers: Stack, tmp_path: Path
) -> None:
    settings = {**BEHIND_PROXIES, "QUOTAGATE_MAX_CONNECTIONS_PER_ADDRESS": "1"}
    async with (
        new_world(module_servers.servers, tmp_path, settings=settings) as world,
        _pool(world) as pool,
    ):
        team = world.team()
        answers = [await client.get("/v1/models", headers=team.headers) for client in pool]
        assert [answer.status_code for answer in answers] == [200] * len(pool)


async def test_a_full_edge_says_why(module_servers: Stack, tmp_path: Path) -> None:
    settings = {"QUOTAGATE_MAX_IN_FLIGHT": "1"}
    async with new_world(module_servers.servers, tmp_path, settings=settings) as world:
        team, gate = world.team(), "held"
        held = asyncio.create_task(world.ask(team, gate=gate))
        await world.witness.one(marker=team.team_id)
        answer = await world.ask(world.team())
        await world.witness.open_gate(gate)
        assert (await held).status_code == 200
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.headers["x-ratelimit-reason"] == "in_flight"
        assert answer.json()["error"]["details"] == {"reason": "in_flight", "scope": "edge"}
        assert await world.edge.metric('quotagate_limited_total{reason="in_flight"}') == 1


@contextlib.asynccontextmanager
async def _pool(world: World) -> AsyncIterator[list[httpx.AsyncClient]]:
    """Clients with a connection each, which stays open."""
    clients = [httpx.AsyncClient(base_url=world.edge.url, timeout=60) for _ in range(8)]
    try:
        yield clients
    finally:
        for client in clients:
            await client.aclose()
