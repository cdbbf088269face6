"""Every further limit from the outside: who refuses and what is told, over the real bus."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from integration.admission.edge import Edge
from integration.bus import Bus
from integration.desk import Desk
from integration.redis_scripts.team import Team
from integration.tables.rows import add_record
from redis.asyncio import Redis
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from contracts.admission import (
    LIMITS,
    Decision,
    KeyLimits,
    LimitReason,
    LimitScope,
    LimitsReply,
    LimitsRequest,
    PreflightReply,
    RateState,
)
from contracts.usage import Usage
from quotagate.stack import Servers
from redis_scripts.keys import key_tat

pytestmark = pytest.mark.usefixtures("far_from_midnight")

FAST = {"rpm": 60_000_000, "tpm": 10**9}
DAY_US = 86_400_000_000


async def team_of(desk: Desk, operator: Redis, **limits: Any) -> Team:
    tier_id = await desk.open_tier(**{**FAST, **limits})
    return Team(await desk.open_team(tier_id, balance_usd="5"), operator)


@pytest.fixture(scope="module")
async def settlement(servers: Servers) -> AsyncIterator[AsyncEngine]:
    """The database as settlement may use it."""
    url = make_url(servers.database_urls["quotagate_settlement"])
    engine = create_async_engine(url.set(drivername="postgresql+asyncpg"))
    yield engine
    await engine.dispose()


def refused_by(reply: PreflightReply) -> LimitReason | None:
    assert reply.decision is Decision.RATE_LIMITED, reply
    assert reply.refusal is not None
    assert reply.reason == reply.refusal.reason.value
    return reply.refusal.reason


async def test_input_and_output_tokens_are_limited_beside_all_tokens(
    edge: Edge, desk: Desk, operator: Redis
) -> None:
    team = await team_of(
        desk,
        operator,
        input_tpm=60_000,
        output_tpm=1_000,
        tpm_weights={"cache_read": "0.1", "output": "2.5"},
    )
    admitted = await edge.preflight(team.team_id)
    assert admitted.limits is not None
    assert admitted.limits.input_tokens == RateState(limit=60_000, remaining=60_000, reset_us=0)
    usage = Usage(input=500, cache_read=1_000, output=4)

    state = (await edge.postflight(team.team_id, admitted, usage)).limits

    # 500 + 1,000 × 0.1 of 60,000 a minute; 4 × 2.5 of 1,000 a minute.
    assert state.input_tokens == RateState(limit=60_000, remaining=59_400, reset_us=600_000)
    assert state.output_tokens == RateState(limit=1_000, remaining=990, reset_us=600_000)
    assert state.reset_tokens_us == 37
    reply = await edge.preflight(team.team_id)
    assert refused_by(reply) in {LimitReason.INPUT_TOKENS, LimitReason.OUTPUT_TOKENS}
    assert reply.refusal is not None
    assert reply.refusal.scope is LimitScope.TEAM
    assert 0 < reply.retry_after_us <= 600_000


async def test_a_lease_is_held_until_the_postflight(
    edge: Edge, desk: Desk, operator: Redis
) -> None:
    team = await team_of(desk, operator, max_concurrency=1)
    admitted = await edge.preflight(team.team_id)
    assert admitted.lease is not None
    assert admitted.lease.life_us == 30_000_000

    refused = await edge.preflight(team.team_id)
    assert refused_by(refused) is LimitReason.CONCURRENCY
    assert (refused.retry_after_us, refused.lease) == (1_000_000, None)
    assert await edge.renew(team.team_id, admitted.lease)
    await edge.postflight(team.team_id, admitted, Usage(input=1))

    again = await edge.preflight(team.team_id)
    assert again.lease is not None
    assert await edge.release(team.team_id, again.lease)
    assert not await edge.release(team.team_id, again.lease)
    assert (await edge.preflight(team.team_id)).decision is Decision.ALLOWED


async def test_fifty_at_once_are_five_in_flight(edge: Edge, desk: Desk, operator: Redis) -> None:
    team = await team_of(desk, operator, rpm=60_000_000, max_concurrency=5)
    await operator.set(team.keys.request_tat, 1)
    replies = await asyncio.gather(*(edge.preflight(team.team_id) for _ in range(50)))
    allowed = [reply for reply in replies if reply.decision is Decision.ALLOWED]
    assert await operator.zcard(team.keys.leases) == len(allowed) == 5
    assert {refused_by(reply) for reply in replies if reply not in allowed} <= {
        LimitReason.CONCURRENCY,
        LimitReason.REQUESTS,
    }


async def test_a_day_of_requests_ends_at_midnight_of_the_tiers_zone(
    edge: Edge, desk: Desk, operator: Redis
) -> None:
    team = await team_of(desk, operator, daily_requests=2, time_zone="Asia/Kathmandu")
    told = [await edge.preflight(team.team_id) for _ in range(3)]
    assert [reply.decision for reply in told] == [Decision.ALLOWED] * 2 + [Decision.RATE_LIMITED]
    remaining = [reply.limits and reply.limits.remaining_day_requests for reply in told]
    assert remaining == [1, 0, 0]
    refusal = told[-1].refusal
    assert refusal is not None
    assert (refusal.reason, refusal.limit, refusal.used) == (LimitReason.DAY_REQUESTS, 2, 2)
    assert refusal.resets_at_us is not None
    # 18:15 UTC is midnight there.
    assert refusal.resets_at_us % DAY_US == (18 * 60 + 15) * 60_000_000
    assert 0 < told[-1].retry_after_us <= DAY_US


async def test_a_day_of_tokens_counts_what_was_used_and_asks_for_the_input(
    edge: Edge, desk: Desk, operator: Redis
) -> None:
    team = await team_of(desk, operator, daily_tokens=1_000)
    admitted = await edge.preflight(team.team_id, estimate=1_000)
    assert admitted.decision is Decision.ALLOWED
    state = (await edge.postflight(team.team_id, admitted, Usage(input=900, output=50))).limits
    assert state.remaining_day_tokens == 50

    too_large = await edge.preflight(team.team_id, estimate=51)
    assert refused_by(too_large) is LimitReason.DAY_TOKENS
    never = await edge.preflight(team.team_id, estimate=1_001)
    assert (never.decision, never.reason) == (Decision.NEVER_ADMISSIBLE, "day_tokens")
    assert (await edge.preflight(team.team_id, estimate=50)).decision is Decision.ALLOWED


async def test_a_lost_day_is_counted_from_the_records(
    edge: Edge, desk: Desk, operator: Redis, settlement: AsyncEngine
) -> None:
    team = await team_of(desk, operator, daily_requests=100, daily_tokens=10_000)
    now = datetime.now(UTC)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for attempt_no, began, tokens in (
        (1, today, 100),
        (2, today, 20),
        (1, today - timedelta(minutes=1), 3),  # yesterday's request and tokens
    ):
        await add_record(
            settlement,
            team.team_id,
            attempt_no=attempt_no,
            started_at=began,
            input_tokens=tokens,
            state="UNBILLABLE",  # nothing here settles it
        )

    reply = await edge.preflight(team.team_id)

    assert reply.limits is not None
    # The one request of today and this one; the tokens of both attempts.
    assert reply.limits.remaining_day_requests == 98
    assert reply.limits.remaining_day_tokens == 10_000 - 120


async def test_a_key_and_a_model_have_limits_of_their_own(
    edge: Edge, desk: Desk, operator: Redis
) -> None:
    of_key = await team_of(desk, operator, key_rates={"rpm": 1})
    assert (await edge.preflight(of_key.team_id)).decision is Decision.ALLOWED
    reply = await edge.preflight(of_key.team_id)
    assert refused_by(reply) is LimitReason.KEY_REQUESTS
    assert reply.refusal is not None
    assert (reply.refusal.scope, reply.refusal.limit) == (LimitScope.KEY, 1)

    of_model = await team_of(desk, operator, model_rates={edge.model: {"tpm": 60}})
    admitted = await edge.preflight(of_model.team_id)
    await edge.postflight(of_model.team_id, admitted, Usage(input=60))
    reply = await edge.preflight(of_model.team_id)
    assert refused_by(reply) is LimitReason.MODEL_TOKENS
    assert 59_000_000 < reply.retry_after_us <= 60_000_000


async def test_a_keys_own_limit_takes_the_place_of_the_tiers_for_keys(
    edge: Edge, desk: Desk, operator: Redis
) -> None:
    team = await team_of(desk, operator, key_rates={"rpm": 1, "tpm": 60_000})
    own = KeyLimits(rpm=60_000_000, tpm=60, token_burst=30)
    admitted = await edge.preflight(team.team_id, key_limits=own)
    # Postflight charges what preflight pinned: 60 of 60 a minute.
    await edge.postflight(team.team_id, admitted, Usage(input=60))
    reply = await edge.preflight(team.team_id, key_limits=own)
    assert refused_by(reply) is LimitReason.KEY_TOKENS
    assert reply.refusal is not None
    assert (reply.refusal.scope, reply.refusal.limit) == (LimitScope.KEY, 60)
    # The next is admitted when the debt is within the burst; it is gone half a minute later.
    assert reply.refusal.resets_at_us is not None
    assert reply.limits is not None
    assert 29_000_000 < reply.retry_after_us <= 30_000_000
    await operator.incrby(key_tat("key", "token").of(team.team_id), -30_000_000)
    assert (await edge.preflight(team.team_id, key_limits=own)).decision is Decision.ALLOWED


async def test_explain_knows_a_keys_own_limits(
    edge: Edge, desk: Desk, operator: Redis, control_plane: Bus
) -> None:
    team = await team_of(desk, operator, key_rates={"tpm": 600})
    own = KeyLimits(rpm=60, request_burst=5, shadow=(LimitReason.KEY_REQUESTS,))
    await edge.preflight(team.team_id, key_limits=own)
    before = await team.snapshot()
    request = LimitsRequest(team_id=team.team_id, key_id="key", key_limits=own)
    reply: LimitsReply = await control_plane.ask(LIMITS, request)
    assert await team.snapshot() == before
    explained = {each.reason: each for each in reply.explained}
    requests, tokens = explained[LimitReason.KEY_REQUESTS], explained[LimitReason.KEY_TOKENS]
    assert (requests.limit, requests.remaining, requests.used) == (60, 5, 1)
    assert (requests.shadow, tokens.limit, tokens.shadow) == (True, 600, False)
    assert reply.decides is None


async def test_explain_tells_a_team_that_nobody_cached_by_the_tier_it_is_given(
    edge: Edge, desk: Desk, operator: Redis, control_plane: Bus
) -> None:
    tier_id = await desk.open_tier(**FAST, daily_requests=5, max_concurrency=2)
    # Another team's request makes the tier's numbers known.
    await edge.preflight(await desk.open_team(tier_id, balance_usd="1"))
    team = Team(await desk.open_team(tier_id), operator)
    unknown: LimitsReply = await control_plane.ask(LIMITS, LimitsRequest(team_id=team.team_id))
    assert (unknown.tier_id, unknown.limits, unknown.explained) == (None, None, ())
    request = LimitsRequest(team_id=team.team_id, tier_id=tier_id)
    reply: LimitsReply = await control_plane.ask(LIMITS, request)
    explained = {each.reason: each for each in reply.explained}
    assert (reply.tier_id, reply.decides) == (None, None)
    assert explained[LimitReason.CONCURRENCY].remaining == 2
    assert not explained[LimitReason.DAY_REQUESTS].known
    assert await team.snapshot() == {}


async def test_in_shadow_mode_a_limit_tells_and_is_charged_only_what_it_let_through(
    edge: Edge, desk: Desk, operator: Redis
) -> None:
    team = await team_of(desk, operator, input_tpm=60, shadow=["input_tokens"])
    first = await edge.preflight(team.team_id)
    assert first.shadowed == ()
    state = (await edge.postflight(team.team_id, first, Usage(input=60))).limits
    second = await edge.preflight(team.team_id)
    assert (second.decision, second.shadowed) == (Decision.ALLOWED, (LimitReason.INPUT_TOKENS,))
    later = (await edge.postflight(team.team_id, second, Usage(input=6_000))).limits
    assert state.input_tokens is not None
    assert later.input_tokens is not None
    assert later.input_tokens.reset_us <= state.input_tokens.reset_us == 60_000_000


@pytest.mark.parametrize("asked", [True, False], ids=["with key and model", "of the team alone"])
async def test_explain_tells_every_limit_and_moves_nothing(
    edge: Edge, desk: Desk, operator: Redis, control_plane: Bus, *, asked: bool
) -> None:
    team = await team_of(
        desk,
        operator,
        rpm=1,
        max_concurrency=5,
        daily_tokens=1_000,
        key_rates={"rpm": 2},
        model_rates={edge.model: {"tpm": 60}},
        shadow=["requests"],
    )
    await edge.preflight(team.team_id)
    before = await team.snapshot()
    request = LimitsRequest(team_id=team.team_id, key_id="key", model=edge.model)
    reply: LimitsReply = await control_plane.ask(
        LIMITS, request if asked else LimitsRequest(team_id=team.team_id)
    )
    assert await team.snapshot() == before
    scoped = [LimitReason.KEY_REQUESTS, LimitReason.MODEL_TOKENS] if asked else []
    explained = {each.reason: each for each in reply.explained}
    assert list(explained) == [
        LimitReason.REQUESTS,
        LimitReason.TOKENS,
        *scoped,
        LimitReason.CONCURRENCY,
        LimitReason.DAY_TOKENS,
    ]
    assert explained[LimitReason.REQUESTS].shadow
    assert explained[LimitReason.REQUESTS].retry_after_us > 0
    assert explained[LimitReason.CONCURRENCY].remaining == 4
    assert explained[LimitReason.DAY_TOKENS].known
    assert reply.decides == (LimitReason.KEY_REQUESTS if asked else None)
