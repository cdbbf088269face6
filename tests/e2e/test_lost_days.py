"""Redis loses a day's counters: day and spend go on from what was used, settled or not."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from e2e.operator import MODEL, Customer, Operator
from integration.services import mend
from redis.asyncio import Redis

from fake_provider.behaviour import fake
from quotagate.stack import Stack

pytestmark = pytest.mark.usefixtures("far_from_midnight")


@pytest.fixture
async def http(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=stack.url("edge-proxy"), timeout=60) as client:
        yield client


HUNDRED = fake(prompt_tokens=90, completion_tokens=10)


async def ask(
    http: httpx.AsyncClient, team: Customer, orders: dict[str, str] = HUNDRED
) -> httpx.Response:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hi."}], "metadata": orders}
    headers = {"authorization": f"Bearer {team.key}"}
    return await http.post("/v1/chat/completions", json=body, headers=headers)


async def test_losing_the_counters_gives_nobody_a_second_day(
    stack: Stack, operator: Operator, http: httpx.AsyncClient
) -> None:
    limits = {"daily_requests": 4, "daily_tokens": 10_000}
    team = await operator.open_team(await operator.open_tier(rpm=60_000_000, tpm=10**9, **limits))
    redis: Redis = Redis.from_url(stack.servers.redis_url)
    try:
        assert (await ask(http, team)).status_code == 200
        await operator.settled(team.team_id, 1)
        # From here on the records wait in the stream.
        await asyncio.to_thread(stack.stop, "settlement")
        for _ in range(2):
            assert (await ask(http, team)).status_code == 200
        lost = [key async for key in redis.scan_iter(f"quota:{{{team.team_id}}}:day:*")]
        assert len(lost) == 2
        await redis.delete(*lost)

        last = await ask(http, team)
        assert last.status_code == 200
        assert last.headers["x-ratelimit-remaining-day-requests"] == "0"
        assert last.headers["x-ratelimit-remaining-day-tokens"] == "9600"
        refused = await ask(http, team)
        assert (refused.status_code, refused.headers["x-ratelimit-reason"]) == (429, "day_requests")
    finally:
        await redis.aclose()
        await asyncio.to_thread(mend, stack)
    await operator.settled(team.team_id, 4)
    told = await operator.get(f"/teams/{team.team_id}/limits")
    used = {each["reason"]: each["used"] for each in told["explained"]}
    assert (used["day_requests"], used["day_tokens"]) == (4, 400)


async def test_losing_what_is_counted_as_spent_gives_nobody_the_money_again(
    stack: Stack, operator: Operator, http: httpx.AsyncClient
) -> None:
    limits = [{"period": "month", "limit_usd": "0.40"}, {"period": "month", "scope": "key"}]
    limits[1]["limit_usd"] = "0.35"
    tier = await operator.open_tier(rpm=60_000_000, tpm=10**12, spend_limits=limits)
    team = await operator.open_team(tier)
    redis: Redis = Redis.from_url(stack.servers.redis_url)
    # $0.15 a million.
    million = fake(prompt_tokens=1_000_000, completion_tokens=0)
    try:
        assert (await ask(http, team, million)).status_code == 200
        await operator.settled(team.team_id, 1)
        await asyncio.to_thread(stack.stop, "settlement")
        assert (await ask(http, team, million)).status_code == 200
        spends = f"quota:{{{team.team_id}}}:*spend:*"
        assert await redis.delete(*[key async for key in redis.scan_iter(spends)]) == 4

        # $0.30 are spent; the third call makes it $0.45.
        assert (await ask(http, team, million)).status_code == 200
        await redis.delete(*[key async for key in redis.scan_iter(spends)])
        refused = await ask(http, team, million)
        assert (refused.status_code, refused.headers["x-ratelimit-reason"]) == (402, "month_spend")
        assert refused.json()["error"]["details"]["used"] == "0.45"
    finally:
        await redis.aclose()
        await asyncio.to_thread(mend, stack)
    await operator.settled(team.team_id, 3)
