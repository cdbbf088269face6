"""Fallbacks and idempotency keys through the whole system, to the last digit of the charge."""

import asyncio
from decimal import Decimal
from typing import Any

import httpx
import openai
import pytest
from e2e.operator import Customer, Operator
from integration.fake_provider.witness import Witness

from fake_provider.behaviour import fake

MILLION = 10**6
MODEL, FALLBACK = "gpt-4o", "gpt-4o-mini"
SAY: Any = [{"role": "user", "content": "Say hello."}]
USAGE = {"prompt_tokens": 1000, "completion_tokens": 50}


def failing_once(team: Customer, **knobs: Any) -> dict[str, str]:
    """Return orders by which a team's first call fails, wherever it goes."""
    return fake(
        marker=team.team_id, status=503, fail_times=1, fail_key=team.team_id, **USAGE, **knobs
    )


async def cost_usd(operator: Operator, model: str) -> Decimal:
    price = await operator.price(model)
    return (1000 * price["input"] + 50 * price["output"]) / MILLION


async def spent_usd(operator: Operator, team: Customer) -> Decimal:
    ledger = await operator.get(f"/teams/{team.team_id}/ledger")
    debits = [entry for entry in ledger["items"] if entry["direction"] == "DEBIT"]
    assert len(debits) == 1
    return Decimal(debits[0]["amount"])


async def test_a_fallback_is_two_records_and_the_second_ones_price(operator: Operator) -> None:
    team = await operator.open_team()
    async with team.openai() as client:
        answer = await client.chat.completions.with_raw_response.create(
            model=MODEL, messages=SAY, metadata=failing_once(team)
        )
    assert answer.headers["x-quotagate-attempts"] == "2"
    records = sorted(await operator.settled(team.team_id, 2), key=lambda one: one["attempt_no"])
    assert [one["inference_id"] for one in records] == [answer.headers["x-inference-id"]] * 2
    assert [(one["attempt_no"], one["state"], one["status_code"]) for one in records] == [
        (1, "UNBILLABLE", 503),
        (2, "SETTLED", 200),
    ]
    assert [one["model_sent"] for one in records] == [MODEL, FALLBACK]
    assert await cost_usd(operator, FALLBACK) != await cost_usd(operator, MODEL)
    assert await spent_usd(operator, team) == await cost_usd(operator, FALLBACK)


async def test_a_balance_gone_negative_meanwhile_is_a_402_before_the_fallback(
    operator: Operator, witness: Witness
) -> None:
    team = await operator.open_team(credit_usd="1")
    async with team.openai() as client:
        asking = asyncio.ensure_future(
            client.chat.completions.create(
                model=MODEL, messages=SAY, metadata=failing_once(team, gate=team.team_id)
            )
        )
        await witness.requests(1, marker=team.team_id)
        adjustment = {"amount": "-2", "reason": "tests"}
        await operator.send("POST", f"/teams/{team.team_id}/adjustments", adjustment)
        await operator.cached_balance_becomes(team.team_id, Decimal(-1))
        await witness.open_gate(team.team_id)
        with pytest.raises(openai.APIStatusError) as caught:
            await asking
    assert caught.value.status_code == httpx.codes.PAYMENT_REQUIRED
    assert caught.value.response.headers["x-quotagate-attempts"] == "1"
    (record,) = await operator.settled(team.team_id, 1)
    assert (record["attempt_no"], record["state"]) == (1, "UNBILLABLE")
    assert len(await witness.requests(1, marker=team.team_id)) == 1


async def test_the_same_key_and_body_is_one_charge(operator: Operator, witness: Witness) -> None:
    team = await operator.open_team()
    answers = []
    async with team.openai() as client:
        for _ in range(2):
            answer = await client.chat.completions.with_raw_response.create(
                model=MODEL,
                messages=SAY,
                metadata=fake(marker=team.team_id, **USAGE),
                extra_headers={"idempotency-key": "order 7"},
            )
            answers.append(answer)
    first, second = answers
    assert second.headers["x-quotagate-idempotent-replay"] == "true"
    assert second.content == first.content
    assert len(await witness.requests(1, marker=team.team_id)) == 1
    await operator.settled(team.team_id, 1)
    assert await spent_usd(operator, team) == await cost_usd(operator, MODEL)
