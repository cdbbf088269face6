"""Problems in the words of each API, and a provider's errors read in them."""

import json
from typing import Any

import pytest

from contracts.limits import LimitState, RateState
from edge_proxy.domain.problems import (
    BALANCE_NEGATIVE,
    CHECK_UNAVAILABLE,
    INVALID_API_KEY,
    INVALID_JSON,
    RATE_LIMITED,
    UNEXPECTED,
    Problem,
    body_too_large,
    model_not_allowed,
    model_not_found,
)
from edge_proxy.domain.shapes import ANTHROPIC_SHAPE, OPENAI_SHAPE, RESPONSES_SHAPE, Shape
from edge_proxy.domain.upstream import FAILED, TIMED_OUT

SHAPES = [OPENAI_SHAPE, RESPONSES_SHAPE, ANTHROPIC_SHAPE]


@pytest.mark.parametrize(
    ("problem", "anthropic_type"),
    [
        (INVALID_JSON, "invalid_request_error"),
        (INVALID_API_KEY, "authentication_error"),
        (BALANCE_NEGATIVE, "billing_error"),
        (model_not_allowed("m"), "permission_error"),
        (model_not_found("m"), "not_found_error"),
        (body_too_large(1), "request_too_large"),
        (RATE_LIMITED, "rate_limit_error"),
        (UNEXPECTED, "api_error"),
        (FAILED, "api_error"),
        (CHECK_UNAVAILABLE, "api_error"),
        (TIMED_OUT, "timeout_error"),
    ],
    ids=lambda value: value.code if isinstance(value, Problem) else value,
)
def test_errors(problem: Problem, anthropic_type: str) -> None:
    expected: dict[str, Any] = {"message": problem.message, "code": problem.code}
    if problem.details is not None:
        expected["details"] = dict(problem.details)
    openai = json.loads(OPENAI_SHAPE.error(problem))
    assert openai == {"error": {**expected, "type": problem.type, "param": problem.param}}
    assert json.loads(RESPONSES_SHAPE.error(problem)) == openai
    anthropic = json.loads(ANTHROPIC_SHAPE.error(problem))
    assert anthropic == {"type": "error", "error": {**expected, "type": anthropic_type}}


@pytest.mark.parametrize("shape", SHAPES)
def test_details_are_part_of_the_error(shape: Shape) -> None:
    problem = RATE_LIMITED.with_details({"limit": "requests", "allowed": 60})
    error = json.loads(shape.error(problem))["error"]
    assert error["details"] == {"limit": "requests", "allowed": 60}


def _event(shape: Shape) -> tuple[str, Any]:
    *head, data, end, last = shape.error_event(FAILED).decode().split("\n")
    assert (end, last) == ("", "")
    return "".join(head), json.loads(data.removeprefix("data: "))


def test_errors_in_streams() -> None:
    name, data = _event(OPENAI_SHAPE)
    assert (name, data) == ("", json.loads(OPENAI_SHAPE.error(FAILED)))
    name, data = _event(ANTHROPIC_SHAPE)
    assert (name, data) == ("event: error", json.loads(ANTHROPIC_SHAPE.error(FAILED)))
    name, data = _event(RESPONSES_SHAPE)
    assert (name, data["type"], data["code"]) == ("event: error", "error", FAILED.code)
    assert data["error"] == json.loads(OPENAI_SHAPE.error(FAILED))["error"]


@pytest.mark.parametrize(
    ("shape", "body", "code"),
    [
        pytest.param(OPENAI_SHAPE, b'{"error":{"code":"c","type":"t"}}', "c", id="code"),
        pytest.param(OPENAI_SHAPE, b'{"error":{"code":null,"type":"t"}}', "t", id="type"),
        pytest.param(OPENAI_SHAPE, b'{"error":{"code":42}}', None, id="a number"),
        pytest.param(
            ANTHROPIC_SHAPE,
            b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
            "overloaded_error",
            id="Anthropic's type",
        ),
        pytest.param(
            ANTHROPIC_SHAPE,
            b'{"type":"error","error":{"type":"invalid_request_error","message":'
            b'"Your credit balance is too low to access the Anthropic API."}}',
            "insufficient_quota",
            id="the gateway's account is empty, in the words of a wrong request",
        ),
        pytest.param(
            ANTHROPIC_SHAPE,
            b'{"type":"error","error":{"type":"billing_error","message":"x"}}',
            "insufficient_quota",
            id="the gateway's account is empty",
        ),
        *(
            pytest.param(shape, body, None, id=f"{type(shape).__name__} {body[:9]!r}")
            for shape in SHAPES
            for body in (b"", b"<html>", b"[]", b"{}", b'{"error":"x"}', b"[" * 9_999)
        ),
    ],
)
def test_codes_of_a_providers_errors(shape: Shape, body: bytes, code: str | None) -> None:
    assert shape.error_code(body) == code


@pytest.mark.parametrize(
    ("body", "openai", "anthropic"),
    [
        (b'{"error":{"message":"x"}}', True, True),
        (b'{"object":"error","message":"vLLM"}', True, False),
        (b"<html>", False, False),
        (b"[]", False, False),
        (b"", False, False),
        (b"[" * 9_999, False, False),
    ],
)
def test_what_a_client_can_read(body: bytes, openai: bool, anthropic: bool) -> None:
    assert OPENAI_SHAPE.is_error(body) is openai
    assert ANTHROPIC_SHAPE.is_error(body) is anthropic


LIMITS = LimitState(
    limit_requests=60,
    remaining_requests=0,
    reset_requests_us=1_000_000,
    limit_tokens=60_000,
    remaining_tokens=59_000,
    reset_tokens_us=1,
)
NOON_US = 1_767_268_800 * 1_000_000


def test_limits_in_anthropics_headers() -> None:
    assert ANTHROPIC_SHAPE.limit_headers(LIMITS, NOON_US) == {
        "anthropic-ratelimit-requests-limit": "60",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2026-01-01T12:00:01Z",
        "anthropic-ratelimit-tokens-limit": "60000",
        "anthropic-ratelimit-tokens-remaining": "59000",
        "anthropic-ratelimit-tokens-reset": "2026-01-01T12:00:01Z",
    }


def test_without_debt_the_reset_is_now() -> None:
    limits = LimitState(
        limit_requests=60,
        remaining_requests=1,
        reset_requests_us=0,
        limit_tokens=1,
        remaining_tokens=1,
        reset_tokens_us=0,
    )
    headers = ANTHROPIC_SHAPE.limit_headers(limits, NOON_US)
    assert headers["anthropic-ratelimit-tokens-reset"] == "2026-01-01T12:00:00Z"


def test_limits_of_input_and_output_have_their_own() -> None:
    rate = RateState(limit=100, remaining=7, reset_us=10**18)
    limits = LimitState(
        limit_requests=60,
        remaining_requests=0,
        reset_requests_us=0,
        limit_tokens=1,
        remaining_tokens=1,
        reset_tokens_us=0,
        input_tokens=rate,
        output_tokens=rate,
    )
    headers = ANTHROPIC_SHAPE.limit_headers(limits, NOON_US)
    assert headers["anthropic-ratelimit-input-tokens-limit"] == "100"
    assert headers["anthropic-ratelimit-output-tokens-remaining"] == "7"
    # A debt of thirty thousand years ends when years do.
    assert headers["anthropic-ratelimit-output-tokens-reset"] == "9999-12-31T23:59:59Z"


def test_openais_clients_know_ours() -> None:
    assert OPENAI_SHAPE.limit_headers(LIMITS, NOON_US) == {}
