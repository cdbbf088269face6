"""Too much at once is refused at the door, on a connection that stays."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from integration.edge_proxy.stand_ins import Latch, allow
from integration.edge_proxy.test_clients_leave import idle
from integration.edge_proxy.world import CHAT, Team, World, asked, eventually
from integration.edge_proxy.world import world as new_world

from contracts.admission import PreflightReply, PreflightRequest
from quotagate.stack import Stack

MESSAGES = "/v1/messages"


class Line:
    """One connection of a client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, team: Team, path: str = CHAT, body: bytes | None = None) -> None:
        """Send one request."""
        body = json.dumps(asked(team)).encode() if body is None else body
        key = team.headers["authorization"]
        head = f"POST {path} HTTP/1.1\r\nhost: e\r\nauthorization: {key}\r\n"
        self._writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of the next answer."""
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:-2])
        body = await self._reader.readexactly(int(headers["content-length"]))
        return int(lines[0].split(" ")[1]), headers, body


@contextlib.asynccontextmanager
async def line(world: World) -> AsyncIterator[Line]:
    reader, writer = await asyncio.open_connection("127.0.0.1", world.edge.port)
    try:
        yield Line(reader, writer)
    finally:
        writer.close()


@pytest.fixture
async def world(module_servers: Stack, tmp_path: Path) -> AsyncIterator[World]:
    """A world whose edge has one request at work, and two out of a calm."""
    settings = {"QUOTAGATE_MAX_AT_WORK": "1", "QUOTAGATE_PREFLIGHT_TIMEOUT_MS": "20000"}
    async with new_world(module_servers.servers, tmp_path, settings=settings) as world:
        yield world


@contextlib.asynccontextmanager
async def full(world: World) -> AsyncIterator[None]:
    """Keep as many requests as may be where they wait for admission."""
    latches = []
    asking = []
    for _ in range(2):
        busy, latch = world.team(), Latch()
        world.stand_ins.on_preflight[busy.team_id] = partial(slowly, latch)
        asking.append(asyncio.create_task(world.ask(busy)))
        await latch.reached.wait()
        latches.append(latch)
    try:
        yield
    finally:
        for latch in latches:
            latch.open.set()
    assert [(await each).status_code for each in asking] == [200, 200]
    await idle(world)


async def slowly(latch: Latch, request: PreflightRequest) -> PreflightReply:
    await latch.wait()
    return await allow(request)


async def test_refused_and_served_on_one_connection(world: World) -> None:
    team = world.team()
    async with line(world) as ours:
        async with full(world):
            ours.send(team)
            status, headers, body = await ours.answer()
            assert (status, headers["retry-after"]) == (503, "1")
            assert json.loads(body)["error"]["code"] == "service_unavailable"
            assert await world.hits(team) == 0
        ours.send(team)
        assert (await ours.answer())[0] == 200


async def test_several_that_come_together_are_all_refused(world: World) -> None:
    async with line(world) as ours, full(world):
        for _ in range(3):
            ours.send(world.team())
        assert [(await ours.answer())[0] for _ in range(3)] == [503] * 3


async def test_in_the_words_of_the_api(world: World) -> None:
    async with line(world) as ours, full(world):
        ours.send(world.team(), MESSAGES)
        status, _, body = await ours.answer()
        assert (status, json.loads(body)["type"]) == (503, "error")


async def test_a_large_body_is_refused_on_the_usual_way(world: World) -> None:
    async with line(world) as ours, full(world):
        ours.send(world.team(), body=b" " * 200_000)
        status, headers, _ = await ours.answer()
        assert (status, headers["connection"]) == (503, "close")


async def test_after_a_crowd_fewer_are_taken(world: World) -> None:
    latches = Latch(), Latch()
    async with line(world) as ours:
        asking = []
        for latch in latches:
            team = world.team()
            world.stand_ins.on_preflight[team.team_id] = partial(slowly, latch)
            asking.append(asyncio.create_task(world.ask(team)))
            await latch.reached.wait()
        ours.send(world.team())
        assert (await ours.answer())[0] == 503
        latches[0].open.set()
        assert (await asking[0]).status_code == 200

        async def one_left() -> bool:
            return await world.edge.metric("quotagate_in_flight") == 1

        await eventually(one_left)
        # Two were taken out of the calm; one is all that may be at work now.
        ours.send(world.team())
        assert (await ours.answer())[0] == 503
        latches[1].open.set()
        assert (await asking[1]).status_code == 200


async def test_what_waits_for_a_provider_is_not_at_work(world: World) -> None:
    team = world.team()
    asking = []
    for number in range(1, 4):
        asking.append(asyncio.create_task(world.ask(team, gate=team.team_id)))
        await world.witness.requests(number, marker=team.team_id)
    assert (await world.ask(world.team())).status_code == 200
    await world.witness.open_gate(team.team_id)
    assert [(await each).status_code for each in asking] == [200] * 3
