"""Cases from the field in which a limit went wrong for somebody: 60 RPM, 60,000 TPM, no burst."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from e2e.operator import MODEL, Customer, Operator

from fake_provider.behaviour import fake
from quotagate.stack import Stack

pytestmark = pytest.mark.usefixtures("far_from_midnight")


@pytest.fixture
async def http(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=stack.url("edge-proxy"), timeout=60) as client:
        yield client


async def open_team(operator: Operator, **limits: Any) -> Customer:
    numbers = {"rpm": 60, "tpm": 60_000} | limits
    return await operator.open_team(await operator.open_tier(**numbers))


async def ask(http: httpx.AsyncClient, team: Customer, **orders: Any) -> httpx.Response:
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "Hello."}],
        "metadata": fake(**orders),
    }
    headers = {"authorization": f"Bearer {team.key}"}
    return await http.post("/v1/chat/completions", json=body, headers=headers)


async def tats(operator: Operator, team: Customer) -> tuple[int | None, int | None]:
    """Return the team's request and token TAT."""
    told = await operator.get(f"/teams/{team.team_id}/limits")
    return told["request_tat_us"], told["token_tat_us"]


async def test_900_tokens_in_and_100_out_are_a_second_of_tokens(
    operator: Operator, http: httpx.AsyncClient
) -> None:
    team = await open_team(operator)
    answer = await ask(http, team, prompt_tokens=900, completion_tokens=100)
    assert answer.headers["x-ratelimit-remaining-tokens"] == "59000"
    assert answer.headers["x-ratelimit-reset-tokens"] == "1s"


@pytest.mark.parametrize(
    ("limits", "usage", "reason"),
    [
        pytest.param({"rpm": 1, "tpm": 10**9}, {"prompt_tokens": 900}, "requests", id="RPM"),
        pytest.param({"rpm": 60_000_000}, {"prompt_tokens": 600_000}, "tokens", id="TPM"),
    ],
)
async def test_what_one_limit_refuses_leaves_the_other_untouched(
    operator: Operator,
    http: httpx.AsyncClient,
    limits: dict[str, int],
    usage: dict[str, int],
    reason: str,
) -> None:
    team = await open_team(operator, **limits)
    assert (await ask(http, team, **usage)).status_code == 200
    before = await tats(operator, team)
    assert None not in before
    for _ in range(10):
        refused = await ask(http, team)
        assert refused.headers["x-ratelimit-reason"] == reason
    assert await tats(operator, team) == before


async def test_600_000_tokens_are_ten_minutes_and_no_minutes_edge_forgives_any(
    operator: Operator, http: httpx.AsyncClient
) -> None:
    team = await open_team(operator, rpm=60_000_000)
    answer = await ask(http, team, prompt_tokens=600_000, completion_tokens=0)
    # As the postflight left it: ten minutes, to the millisecond.
    assert answer.headers["x-ratelimit-reset-tokens"] == "10m0s"
    assert answer.headers["x-ratelimit-remaining-tokens"] == "0"
    _, tat_us = await tats(operator, team)
    refused = await ask(http, team)
    told = await operator.get(f"/teams/{team.team_id}/limits")
    assert told["token_tat_us"] == tat_us
    assert 590_000 < int(refused.headers["retry-after-ms"]) <= 600_000
    assert int(refused.headers["retry-after"]) == -(
        -int(refused.headers["retry-after-ms"]) // 1_000
    )


async def test_with_a_burst_retry_after_is_the_next_request_and_reset_the_whole_debt(
    operator: Operator, http: httpx.AsyncClient
) -> None:
    team = await open_team(operator, rpm=60_000_000, tpm=10**9, input_tpm=60, input_token_burst=60)
    # A minute of debt is within the burst, two minutes are a minute beyond it.
    for _ in range(2):
        assert (await ask(http, team, prompt_tokens=60)).status_code == 200
    refused = await ask(http, team, prompt_tokens=60)
    assert (refused.status_code, refused.headers["x-ratelimit-reason"]) == (429, "input_tokens")
    assert 50_000 < int(refused.headers["retry-after-ms"]) <= 60_000
    assert refused.headers["x-ratelimit-reset-input-tokens"].startswith(("1m", "2m"))
    assert refused.headers["x-ratelimit-remaining-input-tokens"] == "0"


async def test_a_request_that_the_provider_failed_was_a_request(
    operator: Operator, http: httpx.AsyncClient
) -> None:
    team = await open_team(operator, rpm=1, daily_requests=1)
    failed = await ask(http, team, status=500)
    assert failed.status_code >= 500
    request_tat_us, token_tat_us = await tats(operator, team)
    assert request_tat_us is not None
    assert token_tat_us is None
    refused = await ask(http, team)
    assert (refused.status_code, refused.headers["x-ratelimit-reason"]) == (429, "day_requests")


async def test_100_refused_requests_leave_the_day_as_it_was(
    operator: Operator, http: httpx.AsyncClient
) -> None:
    team = await open_team(operator, rpm=1, daily_requests=50, daily_tokens=10_000)
    assert (await ask(http, team, prompt_tokens=10, completion_tokens=0)).status_code == 200
    for _ in range(100):
        assert (await ask(http, team)).status_code == 429
    told = await operator.get(f"/teams/{team.team_id}/limits")
    used = {each["reason"]: each["used"] for each in told["explained"]}
    assert (used["day_requests"], used["day_tokens"]) == (1, 10)
