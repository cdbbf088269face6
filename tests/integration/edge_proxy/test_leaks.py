"""Hundreds of clients leave at every point: one record each, and nothing stays of any of them."""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from integration.edge_proxy.raw_provider import HEAD, Conversation, RawProvider, raw_provider
from integration.edge_proxy.test_clients_leave import EVENT, idle
from integration.edge_proxy.world import CHAT, Team, World, asked, eventually
from integration.edge_proxy.world import world as new_world

from contracts.inference import Outcome
from quotagate.stack import Stack

STREAM = {"stream": True}
EACH = 60
SETTINGS = {"QUOTAGATE_DRAIN_BYTES": "10000", "QUOTAGATE_GRACE_S": "2"}

Leave = Callable[[World, httpx.AsyncClient, Team], Awaitable[None]]


@pytest.fixture
async def raw() -> AsyncIterator[RawProvider]:
    async with raw_provider() as provider:
        yield provider


@pytest.fixture
async def own(module_servers: Stack, raw: RawProvider, tmp_path: Path) -> AsyncIterator[World]:
    async with new_world(module_servers.servers, tmp_path, raw.address, settings=SETTINGS) as world:
        yield world


@pytest.fixture
async def http(own: World) -> AsyncIterator[httpx.AsyncClient]:
    """A client that opens as many connections as it is asked for."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=own.edge.url, timeout=60, limits=limits) as client:
        yield client


async def leave_at_the_gate(
    world: World, http: httpx.AsyncClient, team: Team, body: dict[str, Any], **headers: str
) -> None:
    asking = asyncio.create_task(http.post(CHAT, headers={**team.headers, **headers}, json=body))
    await world.witness.requests(1, marker=team.team_id)
    asking.cancel()
    await asyncio.wait([asking])


async def before_a_whole_answer(world: World, http: httpx.AsyncClient, team: Team) -> None:
    await leave_at_the_gate(world, http, team, asked(team, gate=team.team_id))


async def with_an_idempotency_key(world: World, http: httpx.AsyncClient, team: Team) -> None:
    body = asked(team, gate=team.team_id)
    await leave_at_the_gate(world, http, team, body, **{"idempotency-key": "k"})


async def before_a_stream(world: World, http: httpx.AsyncClient, team: Team) -> None:
    await leave_at_the_gate(world, http, team, asked(team, gate=team.team_id, more=STREAM))


async def in_a_stream(world: World, http: httpx.AsyncClient, team: Team) -> None:
    body = asked(team, gate=team.team_id, gate_after_chunks=2, more=STREAM)
    async with http.stream("POST", CHAT, headers=team.headers, json=body) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                return


WAYS = (before_a_whole_answer, with_an_idempotency_key, before_a_stream, in_a_stream)


async def leave_all(
    world: World, http: httpx.AsyncClient, teams: Mapping[Leave, list[Team]]
) -> None:
    await asyncio.gather(*(leave(world, http, team) for leave in teams for team in teams[leave]))
    await asyncio.gather(*(world.witness.open_gate(team.team_id) for team in every(teams)))


def every(teams: Mapping[Leave, list[Team]]) -> list[Team]:
    return [team for group in teams.values() for team in group]


async def nothing_more_than(world: World, tasks: float) -> None:
    """Return once the edge has no more tasks than before."""

    async def few() -> bool:
        return await world.edge.metric("quotagate_tasks") <= tasks

    await eventually(few)


async def test_hundreds_leave_in_every_way(own: World, http: httpx.AsyncClient) -> None:
    assert (await own.ask(own.team())).status_code == 200
    tasks = await own.edge.metric("quotagate_tasks")
    open_files = []
    for _ in range(2):
        teams: dict[Leave, list[Team]] = {way: [own.team() for _ in range(EACH)] for way in WAYS}
        await leave_all(own, http, teams)
        records = await asyncio.gather(*(own.records.one(team.team_id) for team in every(teams)))
        assert {(record.outcome, record.attempt_no) for record in records} == {
            (Outcome.SUCCEEDED, 1)
        }
        assert all(record.client_gone and record.usage is not None for record in records)
        await idle(own)
        await nothing_more_than(own, tasks)
        open_files.append(await own.edge.metric("process_open_fds"))
        for team in every(teams):
            assert len(own.stand_ins.postflights_of(team.team_id)) == 1
    # Connections to the provider are kept for the next call, and the next burst needed no others.
    assert open_files[1] <= open_files[0] + 5


async def test_providers_that_never_end_are_left(
    own: World, http: httpx.AsyncClient, raw: RawProvider
) -> None:
    # What the edge opens with its first call, and keeps, is there before.
    assert (await own.ask(own.team())).status_code == httpx.codes.OK
    tasks = await own.edge.metric("quotagate_tasks")
    open_files = await own.edge.metric("process_open_fds")

    async def endless(conversation: Conversation) -> None:
        await conversation.say(HEAD)
        while True:
            await conversation.chunk(EVENT % (b"x" * 1_000))
            await asyncio.sleep(0.01)

    raw.script = endless
    teams = [own.team() for _ in range(2 * EACH)]

    async def look_and_leave(team: Team) -> None:
        body = asked(team, model="raw", more=STREAM)
        async with http.stream("POST", CHAT, headers=team.headers, json=body) as answer:
            await anext(answer.aiter_bytes())

    await asyncio.gather(*(look_and_leave(team) for team in teams))
    records = await asyncio.gather(*(own.records.one(team.team_id) for team in teams))
    assert {(record.outcome, record.client_gone) for record in records} == {(Outcome.ABORTED, True)}
    await idle(own)
    await nothing_more_than(own, tasks)

    async def left() -> bool:
        return raw.open == 0 and await own.edge.metric("process_open_fds") <= open_files + 5

    await eventually(left)


async def ended_with_one_record_each(world: World, teams: Sequence[Team]) -> Counter[Outcome]:
    """Wait until the edge is gone; return how the attempts of the teams ended."""
    assert await world.edge.ended() == -signal.SIGTERM
    assert list_spooled(world) == []
    outcomes = Counter[Outcome]()
    for team in teams:
        (record,) = await world.records.of(team.team_id)
        outcomes[record.outcome] += 1
    return outcomes


def list_spooled(world: World) -> list[Path]:
    return list(world.edge.data_dir.glob("*/spool/*"))


async def test_told_to_stop_while_hundreds_have_left(own: World, http: httpx.AsyncClient) -> None:
    teams: dict[Leave, list[Team]] = {way: [own.team() for _ in range(EACH)] for way in WAYS}
    await asyncio.gather(*(leave(own, http, team) for leave in WAYS for team in teams[leave]))
    own.edge.terminate()
    await asyncio.gather(*(own.witness.open_gate(team.team_id) for team in every(teams)))
    outcomes = await ended_with_one_record_each(own, every(teams))
    assert outcomes.total() == EACH * len(WAYS)
    assert outcomes[Outcome.UNKNOWN] == 0


async def test_told_to_stop_while_providers_hang(own: World, http: httpx.AsyncClient) -> None:
    teams = [own.team() for _ in range(2 * EACH)]
    bodies = [
        asked(team, hang=True) if number % 2 else asked(team, hang_after_chunks=1, more=STREAM)
        for number, team in enumerate(teams)
    ]
    asking = [
        asyncio.create_task(http.post(CHAT, headers=team.headers, json=body))
        for team, body in zip(teams, bodies, strict=True)
    ]
    for team in teams:
        await own.witness.requests(1, marker=team.team_id)
    for call in asking[::3]:
        call.cancel()
    own.edge.terminate()
    outcomes = await ended_with_one_record_each(own, teams)
    assert outcomes.total() == 2 * EACH
    assert outcomes[Outcome.SUCCEEDED] == 0
    await asyncio.gather(*asking, return_exceptions=True)
