"""Every limit of the field, met by real clients: each refusal says which it was, and is counted.

A tier refuses until its key or its model, its day or its calls in flight have room; the counters of
admission must then tell what the clients saw.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from e2e.operator import MODEL, Customer, Operator
from integration.fake_provider.witness import Witness

from contracts.admission import LimitReason
from fake_provider.behaviour import fake
from kit.ids import new_id
from quotagate.stack import Stack

pytestmark = pytest.mark.usefixtures("far_from_midnight")

FAST = {"rpm": 60_000_000, "tpm": 10**9}
SLOW = {"rpm": 1}
# What each tier has, and what a call uses: then a further call is refused for this reason.
TIERS: dict[LimitReason, tuple[dict[str, Any], dict[str, Any]]] = {
    LimitReason.REQUESTS: ({"rpm": 1}, {}),
    LimitReason.TOKENS: ({"tpm": 60}, {"prompt_tokens": 60}),
    LimitReason.INPUT_TOKENS: ({"input_tpm": 60}, {"prompt_tokens": 60}),
    LimitReason.OUTPUT_TOKENS: ({"output_tpm": 60}, {"completion_tokens": 60}),
    LimitReason.KEY_REQUESTS: ({"key_rates": SLOW}, {}),
    LimitReason.KEY_TOKENS: ({"key_rates": {"tpm": 60}}, {"prompt_tokens": 60}),
    LimitReason.MODEL_REQUESTS: ({"model_rates": {MODEL: SLOW}}, {}),
    LimitReason.MODEL_TOKENS: ({"model_rates": {MODEL: {"tpm": 60}}}, {"prompt_tokens": 60}),
    LimitReason.DAY_REQUESTS: ({"daily_requests": 1}, {}),
    LimitReason.DAY_TOKENS: ({"daily_tokens": 5_000}, {"prompt_tokens": 5_000}),
}
CODES = {
    LimitReason.CONCURRENCY: "concurrent_limit",
    LimitReason.DAY_REQUESTS: "daily_request_limit",
    LimitReason.DAY_TOKENS: "daily_token_limit",
}


@pytest.fixture
async def http(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=stack.url("edge-proxy"), timeout=60) as client:
        yield client


async def open_team(operator: Operator, **limits: Any) -> Customer:
    return await operator.open_team(await operator.open_tier(**{**FAST, **limits}))


async def ask(http: httpx.AsyncClient, team: Customer, **fields: Any) -> httpx.Response:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hello."}], **fields}
    return await http.post(
        "/v1/chat/completions", json=body, headers={"authorization": f"Bearer {team.key}"}
    )


async def refusals(stack: Stack) -> Counter[str]:
    """Return what admission says it refused, by reason."""
    counted: Counter[str] = Counter()
    async with httpx.AsyncClient() as client:
        text = (await client.get(f"{stack.url('admission')}/metrics")).text
    for line in text.splitlines():
        if line.startswith("quotagate_admission_decisions_total{") and "rate_limited" in line:
            reason = line.partition('reason="')[2].partition('"')[0]
            counted[reason] += int(float(line.rpartition(" ")[2]))
    return counted


async def test_every_reason_appears_and_the_counters_say_what_clients_saw(
    stack: Stack, operator: Operator, http: httpx.AsyncClient
) -> None:
    before = await refusals(stack)
    seen: Counter[str] = Counter()
    for reason, (limits, usage) in TIERS.items():
        team = await open_team(operator, **limits)
        first = await ask(http, team, metadata=fake(**usage))
        assert first.status_code == 200, first.text
        answers = await asyncio.gather(*(ask(http, team) for _ in range(10)))
        for answer in answers:
            assert answer.status_code == 429, (reason, answer.text)
            assert answer.headers["x-ratelimit-reason"] == reason
            assert int(answer.headers["retry-after"]) >= 1
            error = answer.json()["error"]
            assert error["code"] == CODES.get(reason, "rate_limit_exceeded")
            assert error["details"]["reason"] == reason
            by_day = reason in {LimitReason.DAY_REQUESTS, LimitReason.DAY_TOKENS}
            assert (answer.headers.get("x-should-retry") == "false") == by_day
            seen[reason] += 1
    assert await refusals(stack) - before == seen
    assert len(seen) == len(TIERS)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_call_holds_its_place_until_its_real_end(
    operator: Operator, http: httpx.AsyncClient, witness: Witness, *, stream: bool
) -> None:
    team = await open_team(operator, max_concurrency=1)
    marker = new_id()
    orders = fake(marker=marker, gate=marker, gate_after_chunks=2 if stream else None)
    held = asyncio.create_task(ask(http, team, stream=stream, metadata=orders))
    await witness.one(marker=marker)
    refused = await ask(http, team)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "concurrent_limit")
    assert refused.headers["retry-after"] == "1"
    await witness.open_gate(marker)
    assert (await held).status_code == 200
    assert (await ask(http, team)).status_code == 200


async def test_a_failed_call_gives_its_place_back(
    operator: Operator, http: httpx.AsyncClient
) -> None:
    team = await open_team(operator, max_concurrency=1)
    for _ in range(3):
        answer = await ask(http, team, metadata=fake(status=500))
        assert answer.status_code in {500, 502}, answer.text
    assert (await ask(http, team)).status_code == 200


async def test_a_prompt_that_no_day_has_room_for_is_a_bad_request(
    operator: Operator, http: httpx.AsyncClient
) -> None:
    team = await open_team(operator, daily_tokens=100)
    answer = await ask(http, team, user="x" * 1_000)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "request_exceeds_limit")
    assert "retry-after" not in answer.headers
    assert (await ask(http, team)).status_code == 200


async def test_in_shadow_mode_a_header_tells_and_nobody_is_refused(
    operator: Operator, http: httpx.AsyncClient
) -> None:
    team = await open_team(operator, key_rates=SLOW, shadow=["key_requests"])
    assert "x-ratelimit-shadow" not in (await ask(http, team)).headers
    answer = await ask(http, team)
    assert (answer.status_code, answer.headers["x-ratelimit-shadow"]) == (200, "key_requests")


async def test_the_headers_of_further_limits_and_their_explanation(
    operator: Operator, http: httpx.AsyncClient
) -> None:
    limits = {"input_tpm": 60_000, "daily_requests": 3, "daily_tokens": 100_000, "key_rates": SLOW}
    team = await open_team(operator, **limits)
    answer = await ask(http, team, metadata=fake(prompt_tokens=1_000, completion_tokens=10))
    assert answer.headers["x-ratelimit-limit-input-tokens"] == "60000"
    assert answer.headers["x-ratelimit-remaining-input-tokens"] == "59000"
    assert answer.headers["x-ratelimit-reset-input-tokens"] == "1s"
    assert answer.headers["x-ratelimit-remaining-day-requests"] == "2"
    assert answer.headers["x-ratelimit-remaining-day-tokens"] == "98990"

    told = await operator.get(f"/teams/{team.team_id}/limits", key_id=team.key_id, model=MODEL)
    assert told["decides"] == "key_requests"
    explained = {each["reason"]: each for each in told["explained"]}
    assert (explained["day_requests"]["used"], explained["day_requests"]["remaining"]) == (1, 2)
    assert explained["day_tokens"]["used"] == 1_010
    assert explained["key_requests"]["scope"] == "key"
