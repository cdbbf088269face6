"""Leases with everything real: killed edges, long streams, lowered limits, clients that leave."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import httpx
import pytest
from integration.edge_proxy.world import CHAT, EdgeProcess, Team, asked, eventually
from integration.edges.floor import LEASE_S, Floor, is_refused

from contracts.control import POLICY_CHANGED, PolicyChanged
from redis_scripts.keys import team_keys

LIFE_US = int(LEASE_S * 1_000_000)


async def test_a_killed_edges_ten_leases_expire_and_the_room_returns(
    floor: Floor, others: tuple[EdgeProcess, ...]
) -> None:
    doomed = others[0]
    team, _ = await floor.open_team(max_concurrency=10)
    held = await floor.hold(team, 10, doomed)
    assert is_refused(await floor.ask(team))
    assert len(await floor.leases(team)) == 10

    doomed.kill()
    await doomed.ended()
    orphans = await floor.leases(team)
    # Nobody renews them any more, so within a lease's life all are over.
    assert len(orphans) == 10
    assert max(orphans.values()) <= await floor.now_us() + LIFE_US
    while is_refused(await floor.ask(team)):
        pass

    async def all_are_over() -> bool:
        return await floor.now_us() > max(orphans.values())

    await eventually(all_are_over)
    # All ten places are there again, and no eleventh.
    again = await floor.hold(team, 10)
    assert is_refused(await floor.ask(team))
    assert not orphans.keys() & (await floor.leases(team)).keys()
    await floor.end(*again)
    assert await floor.leases(team) == {}
    for broken in held:
        with pytest.raises(httpx.TransportError):
            await broken.call


async def test_a_stream_longer_than_a_leases_life_keeps_it_and_pays_once_at_its_end(
    floor: Floor,
) -> None:
    team, _ = await floor.open_team(max_concurrency=1)
    held = await floor.hold(team, 1)
    ((name, expires_us),) = (await floor.leases(team)).items()

    async def outlived() -> bool:
        return await floor.now_us() > expires_us

    await eventually(outlived)
    ((same, later_us),) = (await floor.leases(team)).items()
    assert same == name
    assert later_us > expires_us
    assert is_refused(await floor.ask(team))
    token_tat = team_keys(team.team_id).token_tat
    assert await floor.redis.get(token_tat) is None
    await floor.end(*held)
    assert await floor.redis.get(token_tat) is not None
    assert await floor.leases(team) == {}
    assert not is_refused(await floor.ask(team))


async def test_a_lowered_limit_refuses_until_there_is_room(floor: Floor) -> None:
    team, tier_id = await floor.open_team(max_concurrency=4)
    held = await floor.hold(team, 4)
    await floor.desk.change_policy(tier_id, limits={"max_concurrency": 2})
    changed = PolicyChanged(tier_id=tier_id, changed_at_us=1)
    await floor.control_plane.announce(POLICY_CHANGED, tier_id, changed)

    async def is_lowered() -> bool:
        return (await floor.explained(team)).limit == 2

    await eventually(is_lowered)
    # Nobody is thrown out: four are in flight, two more than may be.
    explained = await floor.explained(team)
    assert (explained.used, explained.remaining) == (4, 0)
    assert explained.retry_after_us > 0
    for in_flight in (4, 3, 2):
        assert len(await floor.leases(team)) == in_flight
        assert is_refused(await floor.ask(team))
        await floor.end(held.pop())
    assert not is_refused(await floor.ask(team))
    await floor.end(*held)
    assert await floor.leases(team) == {}


async def before_the_first_byte(floor: Floor, team: Team, gate: str) -> None:
    await leave_at_the_gate(floor, team, gate, stream=True)


async def before_a_whole_answer(floor: Floor, team: Team, gate: str) -> None:
    await leave_at_the_gate(floor, team, gate, stream=False)


async def in_the_midst_of_a_stream(floor: Floor, team: Team, gate: str) -> None:
    """Leave with the first two events read, and the rest not sent yet."""
    body = asked(team, more={"stream": True}, gate=gate, gate_after_chunks=2)
    async with (
        httpx.AsyncClient(base_url=floor.edge.url, timeout=60) as http,
        http.stream("POST", CHAT, headers=team.headers, json=body) as answer,
    ):
        assert answer.status_code == httpx.codes.OK
        lines = aiter(answer.aiter_lines())
        for _ in range(2):
            while not (await anext(lines)).startswith("data: "):
                pass


async def reading_no_further(floor: Floor, team: Team, gate: str) -> None:
    """Send the request and end the connection without having read a byte of the answer."""
    body = asked(team, more={"stream": True}, gate=gate, gate_after_chunks=1)
    request = httpx.Request("POST", f"{floor.edge.url}{CHAT}", headers=team.headers, json=body)
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    _, writer = await asyncio.open_connection("127.0.0.1", floor.edge.port)
    writer.write(f"POST {CHAT} HTTP/1.1\r\n{head}\r\n".encode() + request.content)
    await floor.witness.requests(1, marker=team.team_id)
    writer.transport.abort()


async def leave_at_the_gate(floor: Floor, team: Team, gate: str, *, stream: bool) -> None:
    asking = asyncio.create_task(floor.ask(team, stream=stream, gate=gate))
    await floor.witness.requests(1, marker=team.team_id)
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asking


@pytest.mark.parametrize(
    "leave",
    [before_the_first_byte, before_a_whole_answer, in_the_midst_of_a_stream, reading_no_further],
)
async def test_a_client_that_leaves_keeps_its_place_until_the_provider_has_ended(
    floor: Floor, leave: Callable[[Floor, Team, str], Awaitable[None]]
) -> None:
    team, _ = await floor.open_team(max_concurrency=1)
    gate = team.team_id
    await leave(floor, team, gate)
    # The provider still works for it, so its place isn't free.
    assert len(await floor.leases(team)) == 1
    assert is_refused(await floor.ask(team))

    await floor.witness.open_gate(gate)
    record = await floor.records.one(team.team_id)
    # The charge comes before the record, and the lease ends with the charge.
    assert await floor.leases(team) == {}
    assert record.client_gone
    assert not is_refused(await floor.ask(team))
