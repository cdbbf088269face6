"""What Anthropic's client meets here besides answers: errors, limits, keys, models."""

from datetime import UTC, datetime

import anthropic
import httpx
import pytest
from e2e.operator import Customer, Operator
from integration.fake_provider.witness import Witness

from fake_provider.behaviour import fake
from kit.ids import new_id
from quotagate.stack import Stack

MODEL = "claude-haiku-4-5"
BODY = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
VERSION = {"anthropic-version": "2023-06-01"}


async def _ask(team: Customer, marker: str = "", **options: int) -> anthropic.types.Message:
    async with team.anthropic(**options) as client:
        return await client.messages.create(
            model=MODEL,
            max_tokens=9,
            messages=[{"role": "user", "content": "Hi"}],
            extra_body={"metadata": fake(marker=marker, prompt_tokens=1000)},
        )


async def test_limits_are_told_in_its_own_headers_and_in_ours(operator: Operator) -> None:
    team = await operator.open_team(await operator.open_tier(rpm=20, tpm=100_000))
    async with team.anthropic() as client:
        first = await client.messages.with_raw_response.create(
            model=MODEL,
            max_tokens=9,
            messages=[{"role": "user", "content": "Hi"}],
            extra_body={"metadata": fake(prompt_tokens=400, completion_tokens=100)},
        )
    with pytest.raises(anthropic.RateLimitError) as caught:
        await _ask(team)
    assert first.headers["anthropic-ratelimit-tokens-remaining"] == "99500"
    for headers in (first.headers, caught.value.response.headers):
        assert headers["anthropic-ratelimit-requests-limit"] == "20"
        assert headers["anthropic-ratelimit-requests-remaining"] == "0"
        assert headers["anthropic-ratelimit-tokens-limit"] == "100000"
        assert headers["x-ratelimit-limit-requests"] == "20"
        reset = datetime.fromisoformat(headers["anthropic-ratelimit-requests-reset"])
        assert reset.tzinfo is UTC
    refused = caught.value.response
    assert 1 <= int(refused.headers["retry-after"]) <= 3
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert refused.json()["error"]["message"] == "Team rate limit exceeded."


async def test_it_waits_as_it_is_told_and_then_succeeds(operator: Operator) -> None:
    team = await operator.open_team(await operator.open_tier(rpm=60, tpm=1_000_000))
    for _ in range(2):
        await _ask(team, max_retries=2)
    assert len(await operator.settled(team.team_id, count=2)) == 2


async def test_an_empty_balance_is_a_billing_error_and_one_call(
    operator: Operator, witness: Witness
) -> None:
    team, marker = await operator.open_team(credit_usd="0.000001"), new_id()
    await _ask(team)
    with pytest.raises(anthropic.APIStatusError) as caught:
        await _ask(team, marker, max_retries=3)
    assert caught.value.status_code == 402
    assert caught.value.response.json()["error"]["type"] == "billing_error"
    assert caught.value.response.json()["error"]["code"] == "credit_balance_exhausted"
    assert (await witness.counts(marker=marker))["requests"] == 0


@pytest.fixture(scope="module")
async def team(operator: Operator) -> Customer:
    return await operator.open_team()


async def test_an_error_in_a_stream_is_raised(team: Customer) -> None:
    async with team.anthropic() as client:
        with pytest.raises(anthropic.APIStatusError, match="provider_disconnected"):
            async with client.messages.stream(
                model=MODEL,
                max_tokens=9,
                messages=[{"role": "user", "content": "Hi"}],
                extra_body={"metadata": fake(drop_after_chunks=2)},
            ) as stream:
                await stream.get_final_message()


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"x-api-key": "{key}"}, id="x-api-key"),
        pytest.param({"authorization": "Bearer {key}"}, id="bearer"),
        pytest.param(
            {"x-api-key": "sk-ant-of-the-environment", "authorization": "Bearer {key}"},
            id="a provider's key beside ours",
        ),
    ],
)
async def test_where_its_key_may_stand(
    stack: Stack, team: Customer, headers: dict[str, str]
) -> None:
    filled = {name: value.format(key=team.key) for name, value in headers.items()} | VERSION
    async with httpx.AsyncClient(base_url=stack.url("edge-proxy")) as http:
        answer = await http.post("/v1/messages", json=BODY, headers=filled)
    assert answer.status_code == 200, answer.text
    assert answer.json()["type"] == "message"


@pytest.mark.parametrize(
    ("headers", "body", "status", "kind"),
    [
        pytest.param({"x-api-key": "nobodys"}, BODY, 401, "authentication_error", id="no key"),
        pytest.param(
            {}, BODY | {"model": "no-such-model"}, 404, "not_found_error", id="unknown model"
        ),
        pytest.param(
            {}, BODY | {"model": "gpt-4o"}, 404, "not_found_error", id="a model of another API"
        ),
        pytest.param({}, {"model": 7}, 400, "invalid_request_error", id="a number as model"),
        pytest.param(
            {}, {"model": MODEL}, 400, "invalid_request_error", id="what the provider refuses"
        ),
    ],
)
async def test_errors_are_in_its_shape(
    stack: Stack, team: Customer, headers: dict[str, str], body: object, status: int, kind: str
) -> None:
    sent = {"x-api-key": team.key} | VERSION | headers
    async with httpx.AsyncClient(base_url=stack.url("edge-proxy")) as http:
        answer = await http.post("/v1/messages", json=body, headers=sent)
    assert (answer.status_code, answer.json()["type"]) == (status, "error")
    assert answer.json()["error"]["type"] == kind


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1/messages/batches"])
async def test_addresses_below_it_that_are_none(stack: Stack, path: str) -> None:
    async with httpx.AsyncClient(base_url=stack.url("edge-proxy")) as http:
        answer = await http.post(path, json=BODY)
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error")


async def test_models_in_its_shape(operator: Operator) -> None:
    team = await operator.open_team(allowed_models=[MODEL])
    async with team.anthropic() as client:
        listed = [model async for model in client.models.list()]
        one = await client.models.retrieve(MODEL)
        with pytest.raises(anthropic.NotFoundError):
            await client.models.retrieve("gpt-4o")
    assert [(model.id, model.type) for model in listed] == [(MODEL, "model")]
    assert one == listed[0]
    async with team.openai() as openai_client:
        assert (await openai_client.models.retrieve(MODEL)).owned_by == "fake-anthropic"
