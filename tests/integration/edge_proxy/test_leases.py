"""A call's place among those in flight: renewed while it lives, given back at its real end."""

import asyncio

import pytest
from integration.edge_proxy.raw_provider import HEAD, Conversation, RawProvider
from integration.edge_proxy.stand_ins import StandIns, allow
from integration.edge_proxy.world import CHAT, Team, World, asked
from msgspec.structs import replace

from contracts.admission import Lease, LimitReason, PreflightReply, PreflightRequest

# Short, so that a test needn't wait long for a renewal.
LIFE_US = 60_000


def holding(world: World) -> Team:
    """Return a team whose calls hold a lease."""
    team = world.team()

    async def lend(request: PreflightRequest) -> PreflightReply:
        name = f"{request.inference_id}:{request.attempt_no}"
        lease = Lease(name=name, life_us=LIFE_US)
        return replace(await allow(request), lease=lease, shadowed=(LimitReason.TOKENS,))

    world.stand_ins.on_preflight[team.team_id] = lend
    return team


def lease_of(stand_ins: StandIns, team: Team) -> str:
    (asked,) = stand_ins.preflights_of(team.team_id)
    return f"{asked.inference_id}:1"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_lease_is_renewed_until_its_postflight_ends_it(
    world: World, *, stream: bool
) -> None:
    team, stand_ins = holding(world), world.stand_ins
    after = 1 if stream else None
    asking = asyncio.create_task(
        world.ask(team, more={"stream": stream}, gate=team.team_id, gate_after_chunks=after)
    )
    for _ in range(3):
        renewal = await stand_ins.renewals.get()
        assert (renewal.team_id, renewal.lease) == (team.team_id, lease_of(stand_ins, team))
    await world.witness.open_gate(team.team_id)
    answer = await asking

    assert answer.status_code == 200
    assert answer.headers["x-ratelimit-shadow"] == "tokens"
    (charged,) = stand_ins.postflights_of(team.team_id)
    assert charged.lease == lease_of(stand_ins, team)
    assert (charged.key_id, charged.model) == (team.key_id, "plain")
    assert charged.shadowed == (LimitReason.TOKENS,)
    assert stand_ins.releases.empty()


async def test_a_call_without_usage_releases_its_lease(world: World) -> None:
    team, stand_ins = holding(world), world.stand_ins
    answer = await world.ask(team, status=500)
    assert answer.status_code != 200
    released = await stand_ins.releases.get()
    assert (released.team_id, released.lease) == (team.team_id, lease_of(stand_ins, team))
    assert stand_ins.postflights_of(team.team_id) == []


async def test_a_call_that_was_read_on_in_vain_releases_its_lease(
    world: World, raw: RawProvider
) -> None:
    team, stand_ins = holding(world), world.stand_ins

    async def endless(conversation: Conversation) -> None:
        await conversation.say(HEAD)
        while True:
            await conversation.chunk(b'data: {"choices":[]}\n\n' * 400)

    raw.script = endless
    body = asked(team, model="raw", more={"stream": True})
    async with world.http.stream("POST", CHAT, headers=team.headers, json=body) as answer:
        assert answer.status_code == 200
    # The edge reads on within its bounds, and only then is the call over.
    released = await stand_ins.releases.get()
    assert (released.team_id, released.lease) == (team.team_id, lease_of(stand_ins, team))
    record = await world.records.one(team.team_id)
    assert (record.usage, record.client_gone) == (None, True)


async def test_preflight_is_told_what_the_input_has_at_least(world: World) -> None:
    team = world.team()
    await world.ask(team, more={"user": "x" * 4_000})
    (asked,) = world.stand_ins.preflights_of(team.team_id)
    assert 1_000 < asked.estimated_input_tokens < 1_200
