"""Clients that leave or stop reading: accounted for once, and nothing stays."""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from integration.edge_proxy.raw_provider import HEAD, Conversation, RawProvider
from integration.edge_proxy.world import CHAT, Team, World, asked, eventually

from contracts.inference import Outcome
from contracts.usage import Usage

STREAM = {"stream": True}
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n'
LAST = (
    b'data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":50}}\n\ndata: [DONE]\n\n'
)


async def leave_after(world: World, team: Team, chunks: int, **knobs: Any) -> None:
    """Ask for a stream and leave after so many events."""
    body = asked(team, more=STREAM, **knobs)
    async with world.http.stream("POST", CHAT, headers=team.headers, json=body) as answer:
        seen = 0
        async for line in answer.aiter_lines():
            seen += line.startswith("data: ")
            if seen >= chunks:
                return


async def idle(world: World) -> None:
    """Return once the edge has nothing in hand."""

    async def nothing_left() -> bool:
        in_flight = await world.edge.metric("quotagate_in_flight")
        drains = await world.edge.metric("quotagate_drains")
        return (in_flight, drains) == (0, 0)

    await eventually(nothing_left)


async def test_a_stream_is_read_on_to_its_usage(world: World) -> None:
    team = world.team()
    gate = {"gate": team.team_id, "gate_after_chunks": 3}
    await leave_after(world, team, 3, prompt_tokens=100, completion_tokens=50, **gate)
    assert await world.records.of(team.team_id) == []
    await world.witness.open_gate(team.team_id)
    record = await world.records.one(team.team_id)
    assert (record.usage, record.outcome) == (Usage(input=100, output=50), Outcome.SUCCEEDED)
    assert record.client_gone
    assert len(world.stand_ins.postflights_of(team.team_id)) == 1
    assert (await world.witness.one(marker=team.team_id))["outcome"] == "completed"
    await idle(world)


async def test_reading_on_has_an_end_in_bytes(world: World, raw: RawProvider) -> None:
    team = world.team()
    left = asyncio.Event()

    async def endless(conversation: Conversation) -> None:
        await conversation.say(HEAD)
        await conversation.chunk(EVENT % b"x")
        try:
            while True:
                await conversation.chunk(EVENT % (b"x" * 10_000))
        finally:
            left.set()

    raw.script = endless
    await leave_after(world, team, 1, model="raw")
    await left.wait()
    record = await world.records.one(team.team_id)
    assert (record.outcome, record.client_gone, record.usage) == (Outcome.ABORTED, True, None)
    await idle(world)


async def test_a_client_that_stops_reading_is_cut_and_accounted_for(
    world: World, raw: RawProvider
) -> None:
    team = world.team()

    async def much(conversation: Conversation) -> None:
        await conversation.say(HEAD)
        for _ in range(1_500):
            await conversation.chunk(EVENT % (b"x" * 10_000))
        await conversation.chunk(LAST)
        await conversation.chunk(b"")

    raw.script = much
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.connect(("127.0.0.1", world.edge.port))
        client.setblocking(False)
        await send_request(client, world, team, "raw")
        # It never reads: the edge must not collect 15 MB for it, nor wait for ever.
        record = await world.records.one(team.team_id)
    assert record.client_gone
    assert (record.usage, record.outcome) == (Usage(input=100, output=50), Outcome.SUCCEEDED)
    await idle(world)


async def send_request(client: socket.socket, world: World, team: Team, model: str) -> None:
    request = world.http.build_request(
        "POST", CHAT, headers=team.headers, json=asked(team, model=model, more=STREAM)
    )
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    data = f"POST {CHAT} HTTP/1.1\r\n{head}\r\n".encode() + request.content
    await asyncio.get_running_loop().sock_sendall(client, data)


async def leaves_before_the_stream(world: World, team: Team) -> None:
    await leave_at_the_gate(world, team, more=STREAM)


async def leaves_a_whole_answer(world: World, team: Team) -> None:
    await leave_at_the_gate(world, team, more={})


async def leaves_a_stream(world: World, team: Team) -> None:
    await leave_after(world, team, 2, gate=team.team_id, gate_after_chunks=2)


async def leave_at_the_gate(world: World, team: Team, more: dict[str, Any]) -> None:
    asking = asyncio.create_task(world.ask(team, gate=team.team_id, more=more))
    await world.witness.requests(1, marker=team.team_id)
    asking.cancel()
    await asyncio.wait([asking])


@pytest.mark.parametrize(
    "leave", [leaves_before_the_stream, leaves_a_whole_answer, leaves_a_stream]
)
async def test_many_leave_and_nothing_stays(
    world: World, leave: Callable[[World, Team], Awaitable[None]]
) -> None:
    teams = [world.team() for _ in range(60)]
    await asyncio.gather(*(leave(world, team) for team in teams))
    await asyncio.gather(*(world.witness.open_gate(team.team_id) for team in teams))
    records = await asyncio.gather(*(world.records.one(team.team_id) for team in teams))
    assert {record.outcome for record in records} == {Outcome.SUCCEEDED}
    assert all(record.client_gone for record in records)
    assert all(record.usage is not None for record in records)
    await idle(world)
    assert len([team for team in teams if await world.records.of(team.team_id)]) == len(teams)


async def test_a_client_that_leaves_while_sending_moves_nothing(world: World) -> None:
    team = world.team()
    reader, writer = await asyncio.open_connection("127.0.0.1", world.edge.port)
    writer.write(
        f"POST {CHAT} HTTP/1.1\r\nhost: edge\r\nauthorization: Bearer {team.key}\r\n"
        "content-length: 1000\r\n\r\n{".encode()
    )
    await writer.drain()

    async def looked_up() -> bool:
        return team.key_id in world.stand_ins.lookups

    await eventually(looked_up)
    writer.close()
    await idle(world)
    assert await reader.read() == b""
    assert world.stand_ins.preflights_of(team.team_id) == []


async def test_nothing_of_a_request_is_logged(world: World) -> None:
    team = world.team()
    more = {"messages": [{"role": "user", "content": "a very secret prompt"}]}
    await world.ask(team, more=more, text="a very secret completion", status=None)
    await world.ask(team, more=more, status=500, error_message="a very secret completion")
    log = world.edge.log()
    assert "a very secret" not in log
    assert team.key not in log
    assert not re.search("qg_[0-9A-Za-z]{16}_", log)
