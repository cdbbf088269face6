"""A further attempt: the balance is judged, and nothing moves, whatever the limits say."""

from integration.admission.edge import Edge
from integration.bus import refused_with
from integration.desk import Desk
from integration.redis_scripts.team import Team
from integration.tables.rows import new_name
from redis.asyncio import Redis

from contracts.admission import Decision, PreflightReply
from contracts.errors import ErrorCode


async def test_a_team_at_its_request_limit_goes_on(edge: Edge, desk: Desk, operator: Redis) -> None:
    team = Team(await desk.open_team(await desk.open_tier(rpm=1), balance_usd="1"), operator)
    assert (await edge.preflight(team.team_id)).decision is Decision.ALLOWED
    assert (await edge.preflight(team.team_id)).decision is Decision.RATE_LIMITED
    before = await team.snapshot()
    further = await edge.preflight(team.team_id, further=True)
    assert further == PreflightReply(decision=Decision.ALLOWED)
    assert await team.snapshot() == before


async def test_a_balance_gone_negative_refuses(edge: Edge, desk: Desk, operator: Redis) -> None:
    team = Team(await desk.open_team(balance_usd="1"), operator)
    assert (await edge.preflight(team.team_id)).decision is Decision.ALLOWED
    await operator.decrby(team.keys.balance, 1_000_000_001)
    before = await team.snapshot()
    further = await edge.preflight(team.team_id, further=True)
    assert further == PreflightReply(decision=Decision.BALANCE_NEGATIVE)
    assert await team.snapshot() == before


async def test_an_empty_account_may_go_on(edge: Edge, desk: Desk, operator: Redis) -> None:
    team = Team(await desk.open_team(balance_usd="0"), operator)
    assert (await edge.preflight(team.team_id, further=True)).decision is Decision.ALLOWED


async def test_a_balance_that_expired_meanwhile_is_filled(
    edge: Edge, desk: Desk, operator: Redis
) -> None:
    team = Team(await desk.open_team(balance_usd="-2"), operator)
    further = await edge.preflight(team.team_id, further=True)
    assert further.decision is Decision.BALANCE_NEGATIVE
    assert await operator.get(team.keys.balance) == b"-2000000000"
    assert await team.tat_us(team.keys.request_tat) is None


async def test_a_team_that_is_gone_is_no_allowance(edge: Edge) -> None:
    with refused_with(ErrorCode.UNKNOWN_TEAM):
        await edge.preflight(new_name("team"), further=True)
