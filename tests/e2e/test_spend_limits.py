"""Spend limits with everything real: a 402 after spending, what is counted is what was settled."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from e2e.operator import MODEL, Customer, Operator
from integration.control_plane.process import ControlPlane
from integration.control_plane.receiver import SECRET, WebhookReceiver, receiving

from fake_provider.behaviour import fake
from kit.money import exact_sum
from quotagate.stack import Stack

pytestmark = pytest.mark.usefixtures("far_from_midnight")

# $0.15 a million of these: each call costs 15 cents.
A_MILLION = {"prompt_tokens": 1_000_000, "completion_tokens": 0}
CALL_USD = Decimal("0.15")
HARD = {"period": "day", "limit_usd": "0.40"}


@pytest.fixture
async def http(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=stack.url("edge-proxy"), timeout=60) as client:
        yield client


@pytest.fixture
async def webhook(stack: Stack, tmp_path: Path) -> AsyncIterator[WebhookReceiver]:
    """A receiver, and a second control plane that tells it."""
    async with receiving() as receiver:
        settings = {"QUOTAGATE_WEBHOOK_URL": receiver.url, "QUOTAGATE_WEBHOOK_SECRET": SECRET}
        process = ControlPlane(stack.servers, tmp_path, settings)
        try:
            await process.start_ready()
            yield receiver
        finally:
            await process.stop()


async def open_team(operator: Operator, *limits: dict[str, Any], **more: Any) -> Customer:
    tier = await operator.open_tier(tpm=10**12, spend_limits=list(limits), **more)
    return await operator.open_team(tier)


async def ask(http: httpx.AsyncClient, team: Customer, **usage: Any) -> httpx.Response:
    body: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "Hello."}]}
    if usage:
        body["metadata"] = fake(**usage)
    headers = {"authorization": f"Bearer {team.key}"}
    return await http.post("/v1/chat/completions", json=body, headers=headers)


async def explained(operator: Operator, team: Customer, reason: str) -> dict[str, Any]:
    told = await operator.get(f"/teams/{team.team_id}/limits", key_id=team.key_id, model=MODEL)
    found: dict[str, Any] = {each["reason"]: each for each in told["explained"]}[reason]
    return found


async def counted_becomes(operator: Operator, team: Customer, reason: str, usd: Decimal) -> None:
    async with asyncio.timeout(45):
        while Decimal((await explained(operator, team, reason))["usd"]["used"]) != usd:
            await asyncio.sleep(0.05)


async def test_a_team_is_refused_once_its_days_money_is_spent(
    operator: Operator, http: httpx.AsyncClient
) -> None:
    team = await open_team(operator, HARD)
    for _ in range(3):
        assert (await ask(http, team, **A_MILLION)).status_code == 200
    # The rough debits count at once, whatever settlement is about.
    refused = await ask(http, team)
    assert refused.status_code == 402
    assert refused.headers["x-should-retry"] == "false"
    assert refused.headers["x-ratelimit-reason"] == "day_spend"
    error = refused.json()["error"]
    assert (error["type"], error["code"]) == ("insufficient_quota", "spend_limit_reached")
    details = error["details"]
    assert (details["scope"], details["limit"], details["used"]) == ("team", "0.4", "0.45")
    assert details["resets_at"].endswith("T00:00:00Z")
    assert details["resets_at"] in error["message"]
    records = await operator.settled(team.team_id, 3)
    settled = exact_sum(*(Decimal(record["charge"]["amount"]) for record in records))
    await counted_becomes(operator, team, "day_spend", settled)
    assert settled == 3 * CALL_USD
    told = await explained(operator, team, "day_spend")
    assert told["usd"] == {"limit": "0.4", "used": "0.45", "remaining": "0"}
    assert told["retry_after_us"] > 0
    assert (await ask(http, team)).status_code == 402


@pytest.mark.parametrize(
    ("endpoint", "model"), [("/v1/messages", "claude-haiku-4-5"), ("/v1/responses", MODEL)]
)
async def test_every_api_tells_it_in_its_own_words(
    operator: Operator, http: httpx.AsyncClient, endpoint: str, model: str
) -> None:
    team = await open_team(operator, {"period": "month", "limit_usd": "0"})
    body: dict[str, Any] = {"model": model, "max_tokens": 1, "input": "Hello."}
    body["messages"] = [{"role": "user", "content": "Hello."}]
    answer = await http.post(endpoint, json=body, headers={"authorization": f"Bearer {team.key}"})
    assert (answer.status_code, answer.headers["x-ratelimit-reason"]) == (402, "month_spend")
    assert answer.json()["error"]["code"] == "spend_limit_reached"


async def test_a_soft_limit_is_told_and_refuses_nobody(
    operator: Operator, http: httpx.AsyncClient
) -> None:
    team = await open_team(operator, HARD | {"limit_usd": "0.1", "mode": "soft"})
    first = await ask(http, team, **A_MILLION)
    assert "x-ratelimit-shadow" not in first.headers
    second = await ask(http, team, **A_MILLION)
    assert (second.status_code, second.headers["x-ratelimit-shadow"]) == (200, "day_spend")


async def test_a_keys_spend_is_its_own_and_its_limit_may_be_raised(
    operator: Operator, http: httpx.AsyncClient
) -> None:
    team = await open_team(operator, HARD | {"scope": "key", "limit_usd": "0.1"})
    made = await operator.send("POST", f"/teams/{team.team_id}/keys", {"name": "another"})
    other = Customer(team.team_id, made["key_id"], made["key"], team.edge_url)
    assert (await ask(http, team, **A_MILLION)).status_code == 200
    refused = await ask(http, team)
    assert (refused.status_code, refused.headers["x-ratelimit-reason"]) == (402, "key_day_spend")
    assert (await ask(http, other)).status_code == 200
    own = {"spend_limits": [{"period": "day", "limit_usd": "0.5"}]}
    await operator.send("PATCH", f"/keys/{team.key_id}", {"limits": own})
    async with asyncio.timeout(15):
        while (await ask(http, team)).status_code != 200:
            await asyncio.sleep(0.05)


async def test_lost_counters_are_counted_again_from_what_was_settled(
    stack: Stack, operator: Operator, http: httpx.AsyncClient
) -> None:
    from redis.asyncio import Redis

    team = await open_team(operator, HARD)
    for _ in range(3):
        assert (await ask(http, team, **A_MILLION)).status_code == 200
    await operator.settled(team.team_id, 3)
    redis: Redis = Redis.from_url(stack.servers.redis_url)
    keys = [key async for key in redis.scan_iter(f"quota:{{{team.team_id}}}:*", count=10_000)]
    await redis.delete(*keys)
    await redis.aclose()
    assert (await ask(http, team)).status_code == 402


async def test_thresholds_are_told_once_though_settlement_is_killed(
    stack: Stack, operator: Operator, http: httpx.AsyncClient, webhook: WebhookReceiver
) -> None:
    team = await open_team(operator, HARD | {"limit_usd": "0.75", "thresholds": [20, 60, 100]})
    for number in range(5):
        assert (await ask(http, team, **A_MILLION)).status_code == 200
        if number in {1, 3}:
            await asyncio.to_thread(_kill, stack, "settlement")
    await operator.settled(team.team_id, 5)
    await counted_becomes(operator, team, "day_spend", 5 * CALL_USD)

    async with asyncio.timeout(60):
        while len(_of(webhook, team)) < 3:
            await asyncio.sleep(0.05)
    told = [got.verified()["data"] for got in _of(webhook, team)]
    assert sorted(each["threshold_percent"] for each in told) == [20, 60, 100]
    for each in told:
        assert (each["limit_usd"], each["period"], each["mode"]) == ("0.75", "day", "hard")
        event = await operator.get(f"/events/{_of(webhook, team)[0].message_id}")
        assert event["subject"].endswith(team.team_id)
    owed = await operator.get("/webhook-deliveries", owed=True)
    assert not [item for item in owed["items"] if item["data"]["team_id"] == team.team_id]
    assert len(_of(webhook, team)) == 3


def _of(webhook: WebhookReceiver, team: Customer) -> list[Any]:
    return [got for got in webhook.received if team.team_id.encode() in got.body]


def _kill(stack: Stack, name: str) -> None:
    """Kill a service, which the stack starts again."""
    with contextlib.suppress(ProcessLookupError):
        stack.signal(name, "KILL")
