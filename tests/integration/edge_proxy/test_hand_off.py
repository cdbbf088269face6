"""No success that isn't durable, and no record lost: full streams, frozen servers, killed edges."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from integration.edge_proxy.world import Team, World, eventually
from integration.edge_proxy.world import world as new_world

from contracts.inference import INFERENCE_RECORDS, Outcome
from quotagate.stack import Stack

STREAM = {"stream": True}


@pytest.fixture(scope="module")
async def world(
    module_servers: Stack, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    """An edge that doesn't wait long, on servers that may be frozen; each test mends them."""
    folder = tmp_path_factory.mktemp("edge")
    (folder / "armed").mkdir()
    settings = {
        "QUOTAGATE_CRASH_AT": str(folder / "armed"),
        "QUOTAGATE_HAND_OFF_S": "1",
        "QUOTAGATE_ACK_TIMEOUT_S": "0.3",
        "QUOTAGATE_POSTFLIGHT_TIMEOUT_MS": "300",
    }
    async with new_world(module_servers.servers, folder, settings=settings) as own:
        yield own


@pytest.fixture
def armed(world: World) -> Path:
    """The folder in which a crash point is armed by a file of its name."""
    return world.edge.data_dir.with_name("armed")


@contextlib.asynccontextmanager
async def full_stream(world: World) -> AsyncIterator[None]:
    """Let the stream of records refuse everything, as it does when it is full."""
    jetstream = world.bus.jetstream()
    config = (await jetstream.stream_info(INFERENCE_RECORDS.name)).config
    await jetstream.update_stream(replace(config, max_msg_size=1))
    try:
        yield
    finally:
        await jetstream.update_stream(config)


@contextlib.contextmanager
def frozen(stack: Stack, name: str) -> Iterator[None]:
    stack.signal(name, "STOP")
    try:
        yield
    finally:
        stack.signal(name, "CONT")


async def accepts_again(world: World) -> None:
    async def accepted() -> bool:
        return (await world.ask(world.team())).status_code == 200

    await eventually(accepted)


def spooled(world: World) -> list[Path]:
    return list(world.edge.data_dir.glob("*/spool/*.json"))


def nothing_is_left_in(folder: Path) -> bool:
    return not list(folder.iterdir())


def is_unavailable(status: int, body: dict[str, Any]) -> None:
    assert (status, body["error"]["code"]) == (503, "service_unavailable")


async def test_a_full_stream(world: World) -> None:
    team, later = world.team(), world.team()
    async with full_stream(world):
        answer = await world.ask(team, completion_tokens=5)
        is_unavailable(answer.status_code, answer.json())
        assert answer.headers["retry-after"] == "1"
        assert "Hello" not in answer.text
        assert len(spooled(world)) == 1
        # Nobody's next call is made while this one's use isn't where it belongs.
        refused = await world.ask(later)
        is_unavailable(refused.status_code, refused.json())
        assert await world.hits(later) == 0
        assert world.stand_ins.preflights_of(later.team_id) == []
        assert "hand_off" in await world.edge.problems()
    record = await world.records.one(team.team_id)
    assert record.outcome is Outcome.SUCCEEDED
    assert record.usage is not None
    assert record.usage.output == 5
    await accepts_again(world)
    await world.edge.becomes_ready()
    assert spooled(world) == []
    assert len(world.stand_ins.postflights_of(team.team_id)) == 1


async def test_a_full_stream_at_the_end_of_a_stream(world: World) -> None:
    team = world.team()
    async with full_stream(world):
        answer = await world.ask(team, more=STREAM)
        assert answer.status_code == 200
        assert b"[DONE]" not in answer.content
        assert b'"finish_reason":"stop"' not in answer.content
        assert b'"code":"service_unavailable"' in answer.content
    assert (await world.records.one(team.team_id)).usage is not None
    await accepts_again(world)


async def test_a_frozen_server_during_the_call(world: World, module_servers: Stack) -> None:
    team, later = world.team(), world.team()
    assert (await world.ask(later)).status_code == 200
    asking = asyncio.create_task(world.ask(team, gate=team.team_id))
    await world.witness.requests(1, marker=team.team_id)
    with frozen(module_servers, "nats"):
        await world.witness.open_gate(team.team_id)
        answer = await asking
        is_unavailable(answer.status_code, answer.json())
        assert len(spooled(world)) == 1
        refused = await world.ask(later)
        is_unavailable(refused.status_code, refused.json())
        assert len(world.stand_ins.preflights_of(later.team_id)) == 1
    record = await world.records.one(team.team_id)
    assert record.outcome is Outcome.SUCCEEDED
    assert record.usage is not None
    await accepts_again(world)


async def test_a_killed_edge_with_a_spool(world: World) -> None:
    team = world.team()
    async with full_stream(world):
        assert (await world.ask(team)).status_code == 503
        world.edge.kill()
        await world.edge.ended()
        assert len(spooled(world)) == 1
    await world.edge.start_ready()
    record = await world.records.one(team.team_id)
    assert (record.outcome, record.usage is None) == (Outcome.SUCCEEDED, False)
    await accepts_again(world)
    assert spooled(world) == []


async def test_a_killed_edge_whose_journal_knows_less_than_its_spool(
    world: World, armed: Path
) -> None:
    """Killed before the journal was told of the spooled record, and once more while inheriting."""
    team = world.team()
    async with full_stream(world):
        (armed / "edge.spooled").touch()
        with pytest.raises(httpx.TransportError):
            await world.ask(team)
        await world.edge.ended()
        assert len(spooled(world)) == 1
        (armed / "edge.inherited").touch()
        with contextlib.suppress(AssertionError, httpx.TransportError):
            await world.edge.start_ready()
        await world.edge.ended()
        assert nothing_is_left_in(armed)
    await world.edge.start_ready()
    record = await world.records.one(team.team_id)
    assert (record.outcome, record.usage is None) == (Outcome.SUCCEEDED, False)
    await accepts_again(world)
    assert spooled(world) == []
    assert len(await world.records.of(team.team_id)) == 1


async def test_a_record_that_cannot_be_spooled_is_still_in_the_journal(world: World) -> None:
    team = world.team()
    async with full_stream(world):
        (spool,) = world.edge.data_dir.glob("*/spool")
        spool.rename(spool.with_name("gone"))
        answer = await world.ask(team)
        is_unavailable(answer.status_code, answer.json())
        assert "hand_off" in await world.edge.problems()
        world.edge.kill()
        await world.edge.ended()
    await world.edge.start_ready()
    # Its usage died with the process: the spend is unknown, and not invisible.
    record = await world.records.one(team.team_id)
    assert (record.outcome, record.usage) == (Outcome.UNKNOWN, None)
    await accepts_again(world)


async def test_a_record_that_could_not_be_spooled_for_a_while(world: World) -> None:
    team = world.team()
    async with full_stream(world):
        (spool,) = world.edge.data_dir.glob("*/spool")
        spool.rename(spool.with_name("gone"))
        assert (await world.ask(team)).status_code == 503
    record = await world.records.one(team.team_id)
    assert record.outcome is Outcome.SUCCEEDED
    await accepts_again(world)
    world.edge.kill()
    await world.edge.ended()
    await world.edge.start_ready()
    await accepts_again(world)
    # The journal was told when the stream had it: nobody publishes it as unknown.
    assert await world.records.of(team.team_id) == [record]


async def killed_during(world: World, team: Team, **more: Any) -> None:
    """Kill the edge while the provider works for it, and start another."""
    asking = asyncio.create_task(world.ask(team, gate=team.team_id, **more))
    await world.witness.requests(1, marker=team.team_id)
    world.edge.kill()
    await world.edge.ended()
    await asyncio.wait([asking])
    assert asking.exception() is not None
    assert await world.records.of(team.team_id) == []
    await world.edge.start_ready()


@pytest.mark.parametrize("more", [{}, STREAM], ids=["whole", "stream"])
async def test_an_edge_killed_during_a_call(world: World, more: dict[str, Any]) -> None:
    team = world.team()
    await killed_during(world, team, more=more)
    record = await world.records.one(team.team_id)
    (asked_for,) = world.stand_ins.preflights_of(team.team_id)
    assert record.outcome is Outcome.UNKNOWN
    assert record.inference_id == asked_for.inference_id
    assert (record.usage, record.finished_at_us, record.status_code) == (None, None, None)
    assert (record.price_id, record.tier_id, record.provider) == ("fake-plain", "tier_x", "fake")
    assert (record.api_key_id, record.streaming) == (team.key_id, bool(more))
    assert world.stand_ins.postflights_of(team.team_id) == []
    await world.witness.open_gate(team.team_id)


async def test_what_is_acknowledged_is_not_published_again(world: World) -> None:
    team = world.team()
    assert (await world.ask(team)).status_code == 200
    (before,) = await world.records.of(team.team_id)
    await killed_during(world, world.team())
    await accepts_again(world)
    assert await world.records.of(team.team_id) == [before]


async def test_many_calls_and_one_kill(world: World) -> None:
    """Whoever was told of success has a record of success; whoever wasn't has one all the same."""
    teams = [world.team() for _ in range(40)]
    asking = [asyncio.create_task(world.ask(team, latency_ms=n)) for n, team in enumerate(teams)]
    await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
    world.edge.kill()
    await world.edge.ended()
    await asyncio.wait(asking)
    await world.edge.start_ready()
    for team, call in zip(teams, asking, strict=True):
        succeeded = call.exception() is None and call.result().status_code == 200
        if succeeded:
            assert (await world.records.one(team.team_id)).outcome is Outcome.SUCCEEDED
        elif await world.hits(team):
            await world.records.one(team.team_id)
    await accepts_again(world)
