"""Providers that fail, at every endpoint: what the client reads, and what is charged."""

from typing import Any

import pytest
from integration.edge_proxy.calls import (
    MESSAGES,
    RESPONSES,
    each_endpoint,
    each_stream,
    events,
    post,
)
from integration.edge_proxy.world import World

from contracts.inference import Outcome
from contracts.usage import Usage


@each_stream
async def test_a_stream_that_breaks_off_ends_with_an_error(world: World, path: str) -> None:
    team, answer = await post(world, path, more={"stream": True}, drop_after_chunks=2)
    assert events(answer.content)[-1]["error"]["code"] == "provider_disconnected"
    record = await world.records.one(team.team_id)
    assert record.outcome is Outcome.ABORTED
    # Anthropic has told its input at the start: what was reported is charged, nothing is guessed.
    expected = Usage(input=3, output=1) if path == MESSAGES else None
    assert record.usage == expected
    assert [one.usage for one in world.stand_ins.postflights_of(team.team_id)] == (
        [] if expected is None else [expected]
    )


@each_stream
async def test_an_error_in_a_stream_passes_as_it_came(world: World, path: str) -> None:
    team, answer = await post(
        world, path, more={"stream": True}, error_after_chunks=2, error_message="so it is"
    )
    assert "so it is" in str(events(answer.content)[-1])
    record = await world.records.one(team.team_id)
    assert record.outcome is Outcome.FAILED
    # A response that failed tells what it used.
    assert (record.usage is not None) == (path in (RESPONSES, MESSAGES))


@each_endpoint
@pytest.mark.parametrize(
    ("knobs", "status", "code"),
    [
        pytest.param({"status": 401}, 502, "provider_auth_failed", id="401"),
        pytest.param({"status": 402}, 502, "provider_quota_exhausted", id="402"),
        pytest.param({"status": 403}, 502, "provider_auth_failed", id="403"),
        pytest.param({"status": 529}, 502, "provider_failed", id="529"),
        pytest.param({"status": 500, "error_body": "html"}, 502, "provider_failed", id="HTML"),
        pytest.param(
            {"status": 200, "error_body": "garbage"}, 502, "provider_invalid_answer", id="garbage"
        ),
        pytest.param({"drop": True}, 502, "provider_disconnected", id="dropped"),
    ],
)
async def test_a_providers_failure_is_ours_in_the_shape_of_the_api(
    world: World, path: str, knobs: dict[str, Any], status: int, code: str
) -> None:
    team, answer = await post(world, path, **knobs)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code)
    assert answer.headers["x-quotagate-error-source"] == "upstream"
    if path == MESSAGES:
        assert (answer.json()["type"], error["type"]) == ("error", "api_error")
    else:
        assert error["type"] == "upstream_error"
    assert (await world.records.one(team.team_id)).outcome is Outcome.FAILED


@each_endpoint
async def test_a_providers_rate_limit_keeps_its_wait(world: World, path: str) -> None:
    _, answer = await post(world, path, status=429, retry_after_s=7)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    assert answer.headers["x-quotagate-error-source"] == "upstream"
    assert answer.json()["error"]["message"] == "The fake provider was told to fail."


async def test_the_gateways_empty_account_is_never_the_clients(world: World) -> None:
    message = "Your credit balance is too low to access the Anthropic API."
    _, answer = await post(world, MESSAGES, status=400, error_message=message)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "provider_quota_exhausted")
