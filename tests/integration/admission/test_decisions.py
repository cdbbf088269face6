"""Preflight from the outside: every decision, what it pins, and that a refusal moves nothing."""

import asyncio

from integration.admission.edge import Edge
from integration.bus import TIMEOUT_S, Bus, refused_with
from integration.desk import PROVIDER, Desk
from integration.redis_scripts.team import Team
from integration.tables.rows import new_name
from redis.asyncio import Redis

from contracts.admission import (
    LIMITS,
    Decision,
    LimitsReply,
    LimitsRequest,
    LimitState,
    Policy,
    PreflightReply,
)
from contracts.control import (
    POLICY_CHANGED,
    PRICE_CHANGED,
    TIER_CHANGED,
    PolicyChanged,
    PriceChanged,
    TierChanged,
)
from contracts.errors import ErrorCode
from contracts.usage import Usage

MINUTE_US = 60_000_000


async def _price_id(edge: Edge, team_id: str) -> str:
    price = (await edge.preflight(team_id)).prices[0]
    assert price is not None
    return price.price_id


async def test_a_team_never_met_is_admitted(edge: Edge, desk: Desk, operator: Redis) -> None:
    tier_id = await desk.open_tier(rpm=1, tpm=60_000)
    team = Team(await desk.open_team(tier_id, balance_usd="5"), operator)
    reply = await edge.preflight(team.team_id)
    assert reply.decision is Decision.ALLOWED
    assert reply.policy == Policy(tier_id=tier_id, rpm=1, tpm=60_000)
    assert reply.limits == LimitState(
        limit_requests=1,
        remaining_requests=0,
        reset_requests_us=MINUTE_US,
        limit_tokens=60_000,
        remaining_tokens=60_000,
        reset_tokens_us=0,
    )
    assert [price and price.model for price in reply.prices] == [edge.model]
    assert await operator.mget(team.keys.tier, team.keys.balance) == [
        tier_id.encode(),
        b"5000000000",
    ]


async def test_the_second_call_within_the_interval_is_refused(
    edge: Edge, desk: Desk, operator: Redis
) -> None:
    team = Team(await desk.open_team(await desk.open_tier(rpm=1)), operator)
    assert (await edge.preflight(team.team_id)).decision is Decision.ALLOWED
    before = await team.snapshot()
    reply = await edge.preflight(team.team_id)
    assert (reply.decision, reply.reason) == (Decision.RATE_LIMITED, "requests")
    assert reply.limits is not None
    assert 0 < reply.retry_after_us == reply.limits.reset_requests_us < MINUTE_US
    assert await team.snapshot() == before


async def test_a_token_debt_refuses(edge: Edge, desk: Desk, operator: Redis) -> None:
    tier_id = await desk.open_tier(rpm=10**6, tpm=1_000)
    team = Team(await desk.open_team(tier_id, balance_usd="1"), operator)
    admitted = await edge.preflight(team.team_id)
    await edge.postflight(team.team_id, admitted, Usage(input=1_000, output=1_000))
    before = await team.snapshot()
    reply = await edge.preflight(team.team_id)
    assert (reply.decision, reply.reason) == (Decision.RATE_LIMITED, "tokens")
    assert MINUTE_US < reply.retry_after_us < 2 * MINUTE_US
    assert await team.snapshot() == before


async def test_a_negative_balance_refuses_before_the_limits_are_asked(
    edge: Edge, desk: Desk, operator: Redis
) -> None:
    team = Team(await desk.open_team(balance_usd="-0.0000000001"), operator)
    reply = await edge.preflight(team.team_id)
    assert (reply.decision, reply.limits) == (Decision.BALANCE_NEGATIVE, None)
    before = await team.snapshot()
    assert set(before) == {
        team.keys.tier,
        team.keys.tier_version,
        team.keys.balance,
        team.keys.balance_version,
    }
    assert (await edge.preflight(team.team_id)).decision is Decision.BALANCE_NEGATIVE
    assert await team.snapshot() == before


async def test_a_model_without_a_price_is_refused_before_redis_is_asked(
    edge: Edge, desk: Desk, operator: Redis
) -> None:
    team = Team(await desk.open_team(), operator)
    reply = await edge.preflight(team.team_id, "free-lunch")
    assert (reply.decision, reply.prices) == (Decision.MODEL_NOT_PRICED, (None,))
    assert await team.snapshot() == {}


async def test_prices_come_in_the_order_of_the_deployments(edge: Edge, desk: Desk) -> None:
    team_id = await desk.open_team()
    reply = await edge.preflight(
        team_id, "free-lunch", f"{edge.model}-2024-08-06", f"{edge.model}-latest", edge.model
    )
    assert reply.decision is Decision.ALLOWED
    assert [price and price.model for price in reply.prices] == [None, *[edge.model] * 3]


async def test_an_unknown_team_is_an_error(edge: Edge) -> None:
    with refused_with(ErrorCode.UNKNOWN_TEAM):
        await edge.preflight("nobody-at-all")


async def test_a_line_break_in_a_team_id_is_an_invalid_message(edge: Edge) -> None:
    with refused_with(ErrorCode.INVALID_MESSAGE):
        await edge.preflight("team\n")


async def test_a_tier_without_a_policy_is_an_error_and_moves_nothing(
    edge: Edge, operator: Redis
) -> None:
    team = Team(new_name("team"), operator)
    await team.put(tier="ghost")
    before = await team.snapshot()
    with refused_with(ErrorCode.STORE_UNAVAILABLE):
        await edge.preflight(team.team_id)
    assert await team.snapshot() == before


async def test_an_expired_deadline_moves_nothing(edge: Edge, desk: Desk, operator: Redis) -> None:
    team = Team(await desk.open_team(await desk.open_tier(rpm=10**6)), operator)
    await edge.preflight(team.team_id)
    before = await team.snapshot()
    with refused_with(ErrorCode.DEADLINE_EXCEEDED):
        await edge.preflight(team.team_id, deadline_s=-0.001)
    assert await team.snapshot() == before


async def test_another_tier_counts_from_its_event_on_and_keeps_the_debts(
    edge: Edge, desk: Desk, control_plane: Bus, operator: Redis
) -> None:
    team = Team(await desk.open_team(await desk.open_tier(rpm=1)), operator)
    await edge.preflight(team.team_id)
    tat_us = await team.tat_us(team.keys.request_tat)
    new_tier = await desk.open_tier(rpm=2)
    version = await desk.move_team(team.team_id, new_tier)
    changed = TierChanged(team_id=team.team_id, tier_id=new_tier, version=version, changed_at_us=1)
    await control_plane.announce(TIER_CHANGED, team.team_id, changed)

    async def moved() -> PreflightReply:
        while True:
            reply = await edge.preflight(team.team_id)
            if reply.policy is not None and reply.policy.tier_id == new_tier:
                return reply
            await asyncio.sleep(0.01)

    reply = await asyncio.wait_for(moved(), TIMEOUT_S)
    assert reply.decision is Decision.RATE_LIMITED
    assert await team.tat_us(team.keys.request_tat) == tat_us


async def test_a_changed_policy_reaches_admission(
    edge: Edge, desk: Desk, control_plane: Bus
) -> None:
    tier_id = await desk.open_tier(rpm=1)
    team_id = await desk.open_team(tier_id)
    await edge.preflight(team_id)
    await desk.change_policy(tier_id, rpm=2, tpm=3)
    changed = PolicyChanged(tier_id=tier_id, changed_at_us=1)
    await control_plane.announce(POLICY_CHANGED, tier_id, changed)

    async def told() -> LimitsReply:
        while True:
            reply: LimitsReply = await control_plane.ask(LIMITS, LimitsRequest(team_id=team_id))
            if reply.limits is not None and reply.limits.limit_requests == 2:
                return reply
            await asyncio.sleep(0.01)

    reply = await asyncio.wait_for(told(), TIMEOUT_S)
    assert reply.limits is not None
    assert reply.limits.limit_tokens == 3


async def test_a_new_price_reaches_admission_and_is_pinned(
    edge: Edge, desk: Desk, control_plane: Bus
) -> None:
    team_id = await desk.open_team()
    first = await _price_id(edge, team_id)
    second = await desk.add_price(edge.model, output="2")
    changed = PriceChanged(price_id=second, provider=PROVIDER, model=edge.model, changed_at_us=1)
    await control_plane.announce(PRICE_CHANGED, None, changed)

    async def pinned() -> str:
        while True:
            price_id = await _price_id(edge, team_id)
            if price_id != first:
                return price_id
            await asyncio.sleep(0.01)

    assert await asyncio.wait_for(pinned(), TIMEOUT_S) == second


async def test_limits_tell_what_is_cached_and_move_nothing(
    edge: Edge, desk: Desk, control_plane: Bus, operator: Redis
) -> None:
    tier_id = await desk.open_tier(rpm=1)
    team = Team(await desk.open_team(tier_id, balance_usd="5"), operator)
    request = LimitsRequest(team_id=team.team_id)
    unmet = await control_plane.ask(LIMITS, request)
    assert unmet == LimitsReply(now_us=unmet.now_us)
    await edge.preflight(team.team_id)
    before = await team.snapshot()
    reply = await control_plane.ask(LIMITS, request)
    assert (reply.tier_id, reply.balance_nano_usd, reply.balance_version) == (
        tier_id,
        5_000_000_000,
        1,
    )
    assert reply.request_tat_us == await team.tat_us(team.keys.request_tat)
    assert (reply.token_tat_us, reply.limits.remaining_tokens) == (None, 60_000)
    assert reply.limits.reset_requests_us == reply.request_tat_us - reply.now_us
    assert await team.snapshot() == before
