"""Spend limits from the outside: who refuses, what is told, and what a refusal leaves alone."""

from decimal import Decimal
from typing import Any

import pytest
from integration.admission.edge import Edge
from integration.admission.test_limits import FAST
from integration.bus import Bus
from integration.desk import Desk
from integration.redis_scripts.team import Team
from redis.asyncio import Redis

from contracts.admission import (
    LIMITS,
    Decision,
    KeyLimits,
    LimitReason,
    LimitScope,
    LimitsReply,
    LimitsRequest,
)
from contracts.spend import SpendLimit, SpendPeriod, SpendScope
from contracts.usage import Usage
from kit.calendar import days_around, months_around
from redis_scripts.keys import spend_counter

pytestmark = pytest.mark.usefixtures("far_from_midnight")

# A dollar at the model's price.
ONE_USD = Usage(input=1_000_000)
NANO = 10**9
MONTHS = {LimitReason.MONTH_SPEND, LimitReason.KEY_MONTH_SPEND}


def day(limit_usd: str | None, **more: Any) -> dict[str, Any]:
    return {"period": "day", "limit_usd": limit_usd} | more


def month(limit_usd: str | None, **more: Any) -> dict[str, Any]:
    return {"period": "month", "limit_usd": limit_usd} | more


async def open_team(
    desk: Desk, operator: Redis, *limits: dict[str, Any], balance_usd: str = "100", **more: Any
) -> Team:
    tier_id = await desk.open_tier(**{**FAST, "tpm": 10**12, "spend_limits": list(limits), **more})
    return Team(await desk.open_team(tier_id, balance_usd=balance_usd), operator)


async def everything(team: Team) -> dict[bytes, Any]:
    """Return every key of the team, byte by byte, and when it expires."""
    pattern = f"quota:{{{team.team_id}}}:*"
    keys = [key async for key in team.redis.scan_iter(pattern, count=10_000)]
    return {key: (await team.redis.dump(key), await team.redis.pexpiretime(key)) for key in keys}


async def spend_a_dollar(edge: Edge, team: Team, times: int = 1) -> None:
    for _ in range(times):
        admitted = await edge.preflight(team.team_id)
        assert admitted.decision is Decision.ALLOWED, admitted
        await edge.postflight(team.team_id, admitted, ONE_USD)


async def test_a_cold_team_is_counted_and_admitted_and_refused_once_it_has_spent(
    edge: Edge, desk: Desk, operator: Redis
) -> None:
    team = await open_team(desk, operator, day("1.5"), month("90", scope="key"))
    await spend_a_dollar(edge, team, 2)
    refused = await edge.preflight(team.team_id)
    assert (refused.decision, refused.reason) == (Decision.SPEND_LIMITED, "day_spend")
    assert refused.lease is None
    assert refused.refusal is not None
    assert (refused.refusal.limit, refused.refusal.used) == (15 * NANO // 10, 2 * NANO)
    assert refused.refusal.scope is LimitScope.TEAM
    now_us = await team.now_us()
    start_us, end_us = days_around(now_us, "UTC").period_of(now_us)
    assert refused.refusal.resets_at_us == end_us
    assert abs(refused.retry_after_us - (end_us - now_us)) < 60 * 10**6
    key = spend_counter(*months_around(now_us, "UTC").period_of(now_us), "key")
    assert await operator.get(key.of(team.team_id)) == b"2000000000"
    assert (
        await operator.get(spend_counter(start_us, end_us, None).of(team.team_id)) == b"2000000000"
    )

    before = await everything(team)
    for _ in range(100):
        assert (await edge.preflight(team.team_id)).decision is Decision.SPEND_LIMITED
    assert await everything(team) == before


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        pytest.param([day("0")], LimitReason.DAY_SPEND, id="nothing may be spent"),
        pytest.param([day("0", scope="key")], LimitReason.KEY_DAY_SPEND, id="by no key"),
        pytest.param([day("0"), month("0")], LimitReason.MONTH_SPEND, id="the longer wait"),
        pytest.param(
            [day("0"), month(None), month("0", scope="key")],
            LimitReason.KEY_MONTH_SPEND,
            id="null doesn't limit",
        ),
    ],
)
async def test_which_limit_is_told(
    edge: Edge, desk: Desk, operator: Redis, limits: list[dict[str, Any]], reason: LimitReason
) -> None:
    team = await open_team(desk, operator, *limits)
    refused = await edge.preflight(team.team_id)
    now_us = await team.now_us()
    day_end_us, month_end_us = (
        around(now_us, "UTC").period_of(now_us)[1] for around in (days_around, months_around)
    )
    if reason in MONTHS and day_end_us == month_end_us:
        reason = LimitReason.DAY_SPEND  # on a month's last day the waits are equal
    assert (refused.decision, refused.reason) == (Decision.SPEND_LIMITED, reason.value)


async def test_the_balance_is_judged_before_and_the_429s_after(
    edge: Edge, desk: Desk, operator: Redis
) -> None:
    poor = await open_team(desk, operator, day("0"), balance_usd="-1")
    assert (await edge.preflight(poor.team_id)).decision is Decision.BALANCE_NEGATIVE
    team = await open_team(desk, operator, day("0"), daily_requests=10, shadow=["day_spend"])
    assert (await edge.preflight(team.team_id)).shadowed == (LimitReason.DAY_SPEND,)
    team = await open_team(desk, operator, day("1"), tpm=60)
    await spend_a_dollar(edge, team)
    # The tokens wait longer than the day, and yet money is told.
    refused = await edge.preflight(team.team_id)
    assert refused.decision is Decision.SPEND_LIMITED


async def test_a_soft_limit_admits_tells_and_counts_on(
    edge: Edge, desk: Desk, operator: Redis
) -> None:
    team = await open_team(desk, operator, day("1", mode="soft"))
    await spend_a_dollar(edge, team)
    for _ in range(2):
        admitted = await edge.preflight(team.team_id)
        assert admitted.shadowed == (LimitReason.DAY_SPEND,)
        await edge.postflight(team.team_id, admitted, ONE_USD)
    now_us = await team.now_us()
    place = spend_counter(*days_around(now_us, "UTC").period_of(now_us), None)
    assert await operator.get(place.of(team.team_id)) == b"3000000000"


async def test_a_keys_own_limit_takes_the_place_of_every_keys(
    edge: Edge, desk: Desk, operator: Redis
) -> None:
    team = await open_team(desk, operator, day("0", scope="key"))
    assert (await edge.preflight(team.team_id)).decision is Decision.SPEND_LIMITED
    for limit_usd in (Decimal(1), None):
        own = SpendLimit(period=SpendPeriod.DAY, scope=SpendScope.KEY, limit_usd=limit_usd)
        limits = KeyLimits(spend_limits=(own,))
        admitted = await edge.preflight(team.team_id, key_limits=limits)
        assert admitted.decision is Decision.ALLOWED


async def test_spend_is_explained_without_moving_anything(
    edge: Edge, desk: Desk, operator: Redis, control_plane: Bus
) -> None:
    team = await open_team(desk, operator, day("1.5"), month("9", scope="key"))
    await spend_a_dollar(edge, team, 2)
    before = await everything(team)
    told: LimitsReply = await control_plane.ask(
        LIMITS, LimitsRequest(team_id=team.team_id, key_id="key", model=edge.model)
    )
    assert await everything(team) == before
    assert told.decides is LimitReason.DAY_SPEND
    explained = {one.reason: one for one in told.explained}
    team_day, key_month = (
        explained[reason] for reason in (LimitReason.DAY_SPEND, LimitReason.KEY_MONTH_SPEND)
    )
    assert (team_day.used, team_day.remaining) == (2 * NANO, 0)
    assert 0 < team_day.retry_after_us <= 86_400_000_000
    assert (key_month.used, key_month.remaining) == (2 * NANO, 7 * NANO)
    assert (key_month.retry_after_us, key_month.scope) == (0, LimitScope.KEY)
    # Without a key, only the team's.
    told = await control_plane.ask(LIMITS, LimitsRequest(team_id=team.team_id))
    assert LimitReason.KEY_MONTH_SPEND not in {one.reason for one in told.explained}
