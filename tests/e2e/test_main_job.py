"""The main job: a client gets answers, and every token can be followed to the ledger."""

from decimal import Decimal
from typing import Any

import httpx
import openai
import pytest
from e2e.operator import MODEL, Operator
from integration.fake_provider.witness import Witness
from openai.types.chat import ChatCompletionMessageParam

from fake_provider.behaviour import fake
from kit.ids import new_id

SAY_HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Say hello."}]
MILLION = 10**6


def _charge(price: dict[str, Decimal], **tokens: int) -> Decimal:
    return sum((price[name] * count for name, count in tokens.items()), Decimal(0)) / MILLION


async def test_an_answer_is_admitted_metered_handed_off_and_settled(operator: Operator) -> None:
    team = await operator.open_team(credit_usd="10")
    async with team.openai() as client:
        answer = await client.chat.completions.with_raw_response.create(
            model=MODEL,
            messages=SAY_HELLO,
            metadata=fake(prompt_tokens=1000, cached_tokens=400, completion_tokens=50),
        )
    completion = answer.parse()
    assert completion.choices[0].message.content
    assert completion.usage is not None
    assert completion.usage.total_tokens == 1050

    (record,) = await operator.settled(team.team_id)
    charge = _charge(await operator.price(), input=600, cache_read=400, output=50)
    assert record["inference_id"] == answer.headers["x-inference-id"]
    assert (record["state"], record["outcome"], record["attempt_no"]) == ("SETTLED", "succeeded", 1)
    assert record["usage"] == {
        "input": 600,
        "cache_read": 400,
        "cache_write_5m": 0,
        "cache_write_1h": 0,
        "output": 50,
        "reasoning": 0,
    }
    assert Decimal(record["charge"]["amount"]) == charge
    await _balance_is(operator, team.team_id, Decimal(10) - charge, entries=2)


async def _balance_is(operator: Operator, team_id: str, balance_usd: Decimal, entries: int) -> None:
    """See that the account, its ledger and its cache say the same."""
    account = await operator.get(f"/teams/{team_id}/account")
    ledger = (await operator.get(f"/teams/{team_id}/ledger"))["items"]
    newest = max(ledger, key=lambda entry: int(entry["account_version"]))
    assert Decimal(account["balance"]) == balance_usd
    assert account["version"] == len(ledger) == entries
    assert Decimal(newest["balance_after"]) == balance_usd
    signed = {"CREDIT": 1, "DEBIT": -1}
    assert balance_usd == sum(
        signed[entry["direction"]] * Decimal(entry["amount"]) for entry in ledger
    )
    await operator.cached_balance_becomes(team_id, balance_usd)


@pytest.mark.parametrize(
    ("options", "sees_usage"),
    [
        pytest.param({}, False, id="the client says nothing"),
        pytest.param({"stream_options": {"include_usage": False}}, False, id="the client says no"),
        pytest.param({"stream_options": {"include_usage": True}}, True, id="the client says yes"),
    ],
)
async def test_a_stream_is_metered_whether_its_client_wants_usage_or_not(
    operator: Operator, options: dict[str, Any], *, sees_usage: bool
) -> None:
    team = await operator.open_team()
    async with team.openai() as client:
        stream = await client.chat.completions.create(
            model=MODEL,
            messages=SAY_HELLO,
            stream=True,
            metadata=fake(chunk_count=20, prompt_tokens=10, completion_tokens=20),
            **options,
        )
        chunks = [chunk async for chunk in stream]
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert [c.usage.total_tokens for c in chunks if c.usage] == ([30] if sees_usage else [])
    assert all(c.choices for c in chunks[:-1])

    (record,) = await operator.settled(team.team_id)
    charge = _charge(await operator.price(), input=10, output=20)
    assert (record["streaming"], record["outcome"]) == (True, "succeeded")
    assert Decimal(record["charge"]["amount"]) == charge
    await _balance_is(operator, team.team_id, Decimal(10) - charge, entries=2)


async def test_the_second_call_within_three_seconds_is_refused_with_exact_headers(
    operator: Operator, witness: Witness
) -> None:
    """Tier 20 RPM and 100,000 TPM: one call every three seconds, 0.6 ms a token."""
    marker = new_id()
    team = await operator.open_team(await operator.open_tier(rpm=20, tpm=100_000))
    async with team.openai() as client:
        first = await client.chat.completions.with_raw_response.create(
            model=MODEL,
            messages=SAY_HELLO,
            metadata=fake(marker=marker, prompt_tokens=1, completion_tokens=1),
        )
        with pytest.raises(openai.RateLimitError) as caught:
            await client.chat.completions.create(model=MODEL, messages=SAY_HELLO)

    assert first.headers["x-ratelimit-limit-requests"] == "20"
    assert first.headers["x-ratelimit-remaining-requests"] == "0"
    assert first.headers["x-ratelimit-limit-tokens"] == "100000"
    assert first.headers["x-ratelimit-remaining-tokens"] == "99998"
    assert first.headers["x-ratelimit-reset-tokens"] == "2ms"

    refused = caught.value.response
    wait_ms = int(refused.headers["retry-after-ms"])
    assert 0 < wait_ms <= 3000
    error = refused.json()["error"]
    details = error.pop("details")
    assert error == {
        "message": "Team rate limit exceeded.",
        "type": "rate_limit_error",
        "code": "rate_limit_exceeded",
        "param": None,
    }
    assert (details["reason"], details["scope"], details["limit"]) == ("requests", "team", 20)
    assert refused.headers["retry-after"] == str(-(-wait_ms // 1000))
    assert refused.headers["x-ratelimit-reason"] == "requests"
    assert refused.headers["x-ratelimit-limit-requests"] == "20"
    assert refused.headers["x-ratelimit-remaining-requests"] == "0"
    assert _duration_ms(refused.headers["x-ratelimit-reset-requests"]) == wait_ms
    assert refused.headers["x-ratelimit-limit-tokens"] == "100000"
    assert (await witness.counts(marker=marker))["requests"] == 1


def _duration_ms(text: str) -> int:
    """Read `2.95s` or `950ms`."""
    return int(text[:-2]) if text.endswith("ms") else round(float(text[:-1]) * 1000)


async def test_the_sdk_waits_as_it_is_told_and_then_succeeds(operator: Operator) -> None:
    team = await operator.open_team(await operator.open_tier(rpm=60, tpm=100_000))
    async with team.openai(max_retries=2) as client:
        for _ in range(2):
            await client.chat.completions.create(model=MODEL, messages=SAY_HELLO)
    assert len(await operator.settled(team.team_id, count=2)) == 2


async def test_an_empty_balance_is_one_call_and_no_retry(
    operator: Operator, witness: Witness
) -> None:
    team = await operator.open_team(credit_usd="0.000001")
    calls = 0

    async def count(_request: httpx.Request) -> None:
        nonlocal calls
        calls += 1

    http = openai.DefaultAsyncHttpxClient(event_hooks={"request": [count]})
    async with team.openai(max_retries=3, http_client=http) as client:
        await client.chat.completions.create(
            model=MODEL, messages=SAY_HELLO, metadata=fake(prompt_tokens=1000)
        )
        calls, marker = 0, new_id()
        with pytest.raises(openai.APIStatusError) as caught:
            await client.chat.completions.create(
                model=MODEL, messages=SAY_HELLO, metadata=fake(marker=marker)
            )
    refused = caught.value.response
    assert (refused.status_code, calls) == (402, 1)
    assert refused.headers["x-should-retry"] == "false"
    assert refused.json()["error"] == {
        "message": "Team balance is negative. Retry after the balance is refreshed.",
        "type": "insufficient_quota",
        "code": "credit_balance_exhausted",
        "details": {
            "reason": "balance",
            "scope": "team",
            "limit": None,
            "used": None,
            "resets_at": None,
        },
        "param": None,
    }
    assert (await witness.counts(marker=marker))["requests"] == 0


async def test_a_credit_admits_the_next_call_within_a_second(operator: Operator) -> None:
    team = await operator.open_team(credit_usd="0.000001")
    async with team.openai() as client:
        await client.chat.completions.create(
            model=MODEL, messages=SAY_HELLO, metadata=fake(prompt_tokens=1000)
        )
        with pytest.raises(openai.APIStatusError, match="negative"):
            await client.chat.completions.create(model=MODEL, messages=SAY_HELLO)
        await operator.credit(team.team_id, "10")
        await _admitted_soon(client)


async def test_a_raised_tier_is_effective_within_a_second(operator: Operator) -> None:
    team = await operator.open_team(await operator.open_tier(rpm=1, tpm=100_000))
    faster = await operator.open_tier(rpm=60_000)
    async with team.openai() as client:
        await client.chat.completions.create(model=MODEL, messages=SAY_HELLO)
        moved = await operator.send("PUT", f"/teams/{team.team_id}/tier", {"tier_id": faster})
        assert moved["tier_id"] == faster
        # The tier changed, the debt of the first call didn't: it is still a minute of requests.
        await _refused_by_new_limit(client)


async def _refused_by_new_limit(client: openai.AsyncOpenAI) -> None:
    for _ in range(200):
        with pytest.raises(openai.RateLimitError) as caught:
            await client.chat.completions.create(model=MODEL, messages=SAY_HELLO)
        if caught.value.response.headers["x-ratelimit-limit-requests"] == "60000":
            return
    raise AssertionError("the old limit still judges")


async def _admitted_soon(client: openai.AsyncOpenAI) -> None:
    for _ in range(200):
        try:
            await client.chat.completions.create(model=MODEL, messages=SAY_HELLO)
        except openai.APIStatusError:
            continue
        return
    raise AssertionError("still refused")


async def test_a_key_sees_only_its_models(operator: Operator) -> None:
    team = await operator.open_team(allowed_models=[MODEL])
    async with team.openai() as client:
        assert [model.id async for model in await client.models.list()] == [MODEL]
        with pytest.raises(openai.PermissionDeniedError) as caught:
            await client.chat.completions.create(model="gpt-4o", messages=SAY_HELLO)
    assert caught.value.response.json()["error"]["code"] == "model_not_allowed"
