"""Postflight from the outside: what an attempt used is charged exactly, once, to both accounts."""

import asyncio
from decimal import Decimal

import msgspec
import pytest
from integration.admission.edge import Edge
from integration.bus import TIMEOUT_S, Bus, refused_with
from integration.desk import Desk
from integration.redis_scripts.team import Team
from integration.services import ServiceProcess
from redis.asyncio import Redis

from contracts.admission import LIMITS, LimitsRequest
from contracts.control import POLICY_CHANGED, PolicyChanged
from contracts.errors import ErrorCode
from contracts.usage import Usage

TOKEN_US = 1_000
"""At 60,000 TPM a token is a millisecond."""


@pytest.fixture
async def team(desk: Desk, operator: Redis) -> Team:
    """A team with a dollar, at 60,000 TPM."""
    return Team(await desk.open_team(balance_usd="1"), operator)


async def test_every_class_of_tokens_counts_for_the_limit_and_costs(edge: Edge, team: Team) -> None:
    admitted = await edge.preflight(team.team_id)
    usage = Usage(input=1, cache_read=2, cache_write_5m=3, cache_write_1h=4, output=5, reasoning=6)
    reply = await edge.postflight(team.team_id, admitted, usage)
    assert reply.balance_known
    assert (reply.limits.limit_tokens, reply.limits.reset_tokens_us) == (60_000, 21 * TOKEN_US)
    assert reply.limits.remaining_tokens == 60_000 - 21
    # One dollar a million is a thousand nano-USD a token.
    assert await team.redis.get(team.keys.balance) == b"999979000"


async def test_a_fraction_of_a_nano_is_rounded_up(edge: Edge, team: Team) -> None:
    admitted = await edge.preflight(team.team_id)
    assert admitted.prices[0] is not None
    usd = msgspec.structs.replace(admitted.prices[0].usd_per_million, input=Decimal("0.0000001"))
    cheap = msgspec.structs.replace(admitted.prices[0], usd_per_million=usd)
    pinned = msgspec.structs.replace(admitted, prices=(cheap,))
    await edge.postflight(team.team_id, pinned, Usage(input=1))
    assert await team.redis.get(team.keys.balance) == b"999999999"


async def test_charges_add_up_and_an_overshoot_is_paid_back_exactly(edge: Edge, team: Team) -> None:
    admitted = await edge.preflight(team.team_id)
    first = await edge.postflight(team.team_id, admitted, Usage(input=600_000))
    assert first.limits.reset_tokens_us == 600_000 * TOKEN_US
    tat_us = await team.tat_us(team.keys.token_tat)
    await edge.postflight(team.team_id, admitted, Usage(output=900))
    assert tat_us is not None
    assert await team.tat_us(team.keys.token_tat) == tat_us + 900 * TOKEN_US


async def test_the_request_limit_is_told_but_not_charged_again(edge: Edge, team: Team) -> None:
    admitted = await edge.preflight(team.team_id)
    tat_us = await team.tat_us(team.keys.request_tat)
    reply = await edge.postflight(team.team_id, admitted, Usage(input=1))
    assert reply.limits.limit_requests == 60
    assert await team.tat_us(team.keys.request_tat) == tat_us


async def test_the_balance_may_go_below_zero(edge: Edge, team: Team) -> None:
    admitted = await edge.preflight(team.team_id)
    await edge.postflight(team.team_id, admitted, Usage(output=2_000_000))
    assert await team.redis.get(team.keys.balance) == b"-1000000000"


async def test_no_usage_moves_nothing(edge: Edge, team: Team) -> None:
    admitted = await edge.preflight(team.team_id)
    before = await team.snapshot()
    reply = await edge.postflight(team.team_id, admitted, Usage())
    assert (reply.balance_known, reply.limits.reset_tokens_us) == (True, 0)
    assert await team.snapshot() == before


async def test_a_missing_balance_is_not_created(
    edge: Edge, team: Team, admission: ServiceProcess
) -> None:
    counter = "quotagate_admission_postflights_without_balance_total"
    counted = await admission.metric(counter)
    admitted = await edge.preflight(team.team_id)
    await team.redis.delete(team.keys.balance, team.keys.balance_version)
    reply = await edge.postflight(team.team_id, admitted, Usage(input=1))
    assert not reply.balance_known
    assert reply.limits.reset_tokens_us == TOKEN_US
    assert not await team.redis.exists(team.keys.balance)
    assert await admission.metric(counter) == counted + 1


async def test_a_call_in_flight_keeps_the_policy_it_was_admitted_under(
    edge: Edge, desk: Desk, control_plane: Bus, operator: Redis
) -> None:
    tier_id = await desk.open_tier(tpm=60_000)
    team = Team(await desk.open_team(tier_id, balance_usd="1"), operator)
    admitted = await edge.preflight(team.team_id)
    await desk.change_policy(tier_id, rpm=60, tpm=600)
    changed = PolicyChanged(tier_id=tier_id, changed_at_us=1)
    await control_plane.announce(POLICY_CHANGED, tier_id, changed)

    async def known() -> None:
        while True:
            told = await control_plane.ask(LIMITS, LimitsRequest(team_id=team.team_id))
            if told.limits.limit_tokens == 600:
                return
            await asyncio.sleep(0.01)

    await asyncio.wait_for(known(), TIMEOUT_S)
    reply = await edge.postflight(team.team_id, admitted, Usage(input=10))
    assert (reply.limits.limit_tokens, reply.limits.reset_tokens_us) == (60_000, 10 * TOKEN_US)


async def test_an_expired_deadline_moves_nothing(edge: Edge, team: Team) -> None:
    admitted = await edge.preflight(team.team_id)
    before = await team.snapshot()
    with refused_with(ErrorCode.DEADLINE_EXCEEDED):
        await edge.postflight(team.team_id, admitted, Usage(input=1), deadline_s=-0.001)
    assert await team.snapshot() == before


async def test_usage_beyond_all_money_is_an_invalid_message_and_moves_nothing(
    edge: Edge, team: Team
) -> None:
    admitted = await edge.preflight(team.team_id)
    before = await team.snapshot()
    with refused_with(ErrorCode.INVALID_MESSAGE):
        await edge.postflight(team.team_id, admitted, Usage(output=2**62))
    assert await team.snapshot() == before
