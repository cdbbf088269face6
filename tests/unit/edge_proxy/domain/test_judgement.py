"""Admission's decisions and the routes, put into what a client is told."""

import json
from decimal import Decimal

import pytest

from contracts.admission import (
    Decision,
    LimitReason,
    LimitScope,
    LimitState,
    Policy,
    PreflightReply,
    Refusal,
)
from contracts.usage import Price, UsdPerMillion
from edge_proxy.domain.endpoints import CHAT_COMPLETIONS, MESSAGES, Endpoint
from edge_proxy.domain.inference import Caller
from edge_proxy.domain.judgement import legs, refusal, route_for
from edge_proxy.domain.problems import BALANCE_NEGATIVE, CHECK_UNAVAILABLE, Problem
from edge_proxy.domain.routes import Routes, parse
from edge_proxy.domain.shapes import ANTHROPIC_SHAPE, OPENAI_SHAPE, RESPONSES_SHAPE, Shape
from edge_proxy.domain.surroundings import Surroundings

ROUTES = parse(
    """
    [providers.a]
    adapter = "openai"
    base_url = "http://a"
    [providers.b]
    adapter = "openai"
    base_url = "http://b"
    [models.one]
    deployments = [{ provider = "a", model = "x" }, { provider = "b", model = "y" }]
    [providers.c]
    adapter = "anthropic"
    base_url = "http://c"
    [models.two]
    deployments = [{ provider = "a", model = "z" }]
    [models.mixed]
    deployments = [{ provider = "c", model = "w" }, { provider = "b", model = "y" }]
    """,
    Surroundings(variables={}, read_file=lambda _: ""),
)
LIMITS = LimitState(
    limit_requests=60,
    remaining_requests=0,
    reset_requests_us=500_000,
    limit_tokens=60_000,
    remaining_tokens=59_000,
    reset_tokens_us=1_000_000,
)
POLICY = Policy(tier_id="t", rpm=60, tpm=60_000)


def price(price_id: str) -> Price:
    dollar = Decimal(1)
    classes = dict.fromkeys(UsdPerMillion.__struct_fields__, dollar)
    return Price(
        price_id=price_id,
        provider="a",
        model="x",
        usd_per_million=UsdPerMillion(**classes),
        effective_from_us=0,
    )


def caller(*models: str) -> Caller:
    return Caller(team_id="t", key_id="k", allowed_models=models or None)


@pytest.mark.parametrize(
    ("model", "who", "status", "code"),
    [
        pytest.param("three", caller(), 404, "model_not_found", id="no such model"),
        pytest.param("three", caller("one"), 404, "model_not_found", id="not found comes first"),
        pytest.param("two", caller("one"), 403, "model_not_allowed", id="not this key"),
    ],
)
def test_no_route(model: str, who: Caller, status: int, code: str) -> None:
    problem = route_for(ROUTES, CHAT_COMPLETIONS, who, model)
    assert isinstance(problem, Problem)
    assert (problem.status, problem.code, problem.param) == (status, code, "model")


@pytest.mark.parametrize("who", [caller(), caller("one")], ids=["any model", "this model"])
def test_a_route(who: Caller) -> None:
    route = route_for(ROUTES, CHAT_COMPLETIONS, who, "one")
    assert not isinstance(route, Problem)
    assert [(one.provider, one.model) for one in route.deployments] == [("a", "x"), ("b", "y")]


@pytest.mark.parametrize(
    ("endpoint", "found"),
    [
        pytest.param(CHAT_COMPLETIONS, [("b", "y")], id="OpenAI's"),
        pytest.param(MESSAGES, [("c", "w")], id="Anthropic's"),
    ],
)
def test_a_route_has_the_deployments_that_serve_the_endpoint(
    endpoint: Endpoint, found: list[tuple[str, str]]
) -> None:
    """Or one that can't be called would be priced, and its request admitted for nothing."""
    route = route_for(ROUTES, endpoint, caller(), "mixed")
    assert not isinstance(route, Problem)
    assert [(one.provider, one.model) for one in route.deployments] == found
    assert [(one.provider.name, one.model) for one in route.targets] == found


def test_allowed() -> None:
    reply = PreflightReply(decision=Decision.ALLOWED, policy=POLICY, prices=(price("p"),))
    assert refusal(reply, "m") is None


@pytest.mark.parametrize(
    "reply",
    [
        PreflightReply(decision=Decision.ALLOWED, prices=(price("p"),)),
        PreflightReply(decision=Decision.ALLOWED, policy=POLICY),
        PreflightReply(decision=Decision.ALLOWED, policy=POLICY, prices=(None,)),
    ],
    ids=["no policy", "no prices", "no price"],
)
def test_allowed_without_what_it_is_charged_by(reply: PreflightReply) -> None:
    assert refusal(reply, "m") == CHECK_UNAVAILABLE


def test_not_priced() -> None:
    problem = refusal(PreflightReply(decision=Decision.MODEL_NOT_PRICED), "m")
    assert problem is not None
    assert (problem.status, problem.code) == (400, "model_not_priced")


def test_negative_balance() -> None:
    reply = PreflightReply(decision=Decision.BALANCE_NEGATIVE, limits=LIMITS)
    assert refusal(reply, "m") == BALANCE_NEGATIVE
    assert BALANCE_NEGATIVE.status == 402
    assert BALANCE_NEGATIVE.headers == {
        "x-should-retry": "false",
        "x-ratelimit-reason": "balance",
    }
    assert BALANCE_NEGATIVE.details is not None
    assert (BALANCE_NEGATIVE.details["reason"], BALANCE_NEGATIVE.details["scope"]) == (
        "balance",
        "team",
    )


@pytest.mark.parametrize("reason", ["requests", "tokens"])
def test_rate_limited(reason: str) -> None:
    reply = PreflightReply(
        decision=Decision.RATE_LIMITED, reason=reason, retry_after_us=1_000_001, limits=LIMITS
    )
    problem = refusal(reply, "m")
    assert problem is not None
    assert (problem.status, problem.message) == (429, "Team rate limit exceeded.")
    assert problem.headers == {
        "retry-after": "2",
        "retry-after-ms": "1001",
        "x-ratelimit-reason": reason,
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "500ms",
        "x-ratelimit-limit-tokens": "60000",
        "x-ratelimit-remaining-tokens": "59000",
        "x-ratelimit-reset-tokens": "1s",
    }


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        pytest.param(LimitReason.INPUT_TOKENS, "Team rate limit exceeded.", id="the team's"),
        pytest.param(LimitReason.KEY_TOKENS, "API key rate limit exceeded.", id="the key's"),
        pytest.param(
            LimitReason.MODEL_REQUESTS, "Team rate limit of this model exceeded.", id="the model's"
        ),
    ],
)
def test_the_message_says_whose_limit_it_was(reason: LimitReason, message: str) -> None:
    limit = Refusal(reason=reason, scope=LimitScope.TEAM, limit=1, used=1)
    problem = refusal(PreflightReply(decision=Decision.RATE_LIMITED, refusal=limit), "m")
    assert problem is not None
    assert (problem.code, problem.message) == ("rate_limit_exceeded", message)


DAY_END_US = 1_788_480_000_000_001


@pytest.mark.parametrize(
    ("reason", "code", "should_retry"),
    [
        pytest.param(LimitReason.CONCURRENCY, "concurrent_limit", None, id="concurrency"),
        pytest.param(LimitReason.DAY_REQUESTS, "daily_request_limit", "false", id="day's requests"),
        pytest.param(LimitReason.DAY_TOKENS, "daily_token_limit", "false", id="day's tokens"),
        *(
            pytest.param(reason, "rate_limit_exceeded", None, id=reason.value)
            for reason in LimitReason
            if reason.value.endswith(("requests", "tokens")) and not reason.startswith("day_")
        ),
    ],
)
def test_each_reason_has_its_code_and_details(
    reason: LimitReason, code: str, should_retry: str | None
) -> None:
    limit = Refusal(reason=reason, scope=LimitScope.KEY, limit=10, used=12, resets_at_us=DAY_END_US)
    reply = PreflightReply(
        decision=Decision.RATE_LIMITED, reason=reason.value, retry_after_us=5_000_000, refusal=limit
    )
    problem = refusal(reply, "m")
    assert problem is not None
    assert (problem.status, problem.type, problem.code) == (429, "rate_limit_error", code)
    assert problem.headers["x-ratelimit-reason"] == reason.value
    assert problem.headers["retry-after"] == "5"
    assert problem.headers.get("x-should-retry") == should_retry
    assert json.loads(OPENAI_SHAPE.error(problem))["error"]["details"] == {
        "reason": reason.value,
        "scope": "key",
        "limit": 10,
        "used": 12,
        "resets_at": "2026-09-04T00:00:01Z",
    }


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (LimitReason.DAY_SPEND, "The team's spend limit of this day is reached"),
        (LimitReason.MONTH_SPEND, "The team's spend limit of this month is reached"),
        (LimitReason.KEY_DAY_SPEND, "This API key's spend limit of this day is reached"),
        (LimitReason.KEY_MONTH_SPEND, "This API key's spend limit of this month is reached"),
    ],
)
@pytest.mark.parametrize("shape", [OPENAI_SHAPE, RESPONSES_SHAPE, ANTHROPIC_SHAPE])
def test_spend_that_is_reached_is_a_402_that_says_when_it_resets(
    reason: LimitReason, message: str, shape: Shape
) -> None:
    limit = Refusal(
        reason=reason,
        scope=LimitScope.TEAM,
        limit=25_000_000_000,
        used=25_000_000_001,
        resets_at_us=DAY_END_US,
    )
    reply = PreflightReply(
        decision=Decision.SPEND_LIMITED,
        reason=reason.value,
        retry_after_us=3_600_000_000,
        refusal=limit,
    )
    problem = refusal(reply, "m")
    assert problem is not None
    assert problem.status == 402
    assert problem.headers == {
        "x-should-retry": "false",
        "x-ratelimit-reason": reason.value,
        "retry-after": "3600",
        "retry-after-ms": "3600000",
    }
    error = json.loads(shape.error(problem))["error"]
    assert error["code"] == "spend_limit_reached"
    assert error["message"] == f"{message}; it resets at 2026-09-04T00:00:01Z."
    assert error["type"] in {"insufficient_quota", "billing_error"}
    assert error["details"] == {
        "reason": reason.value,
        "scope": "team",
        "limit": "25",
        "used": "25.000000001",
        "resets_at": "2026-09-04T00:00:01Z",
    }


def test_what_no_day_would_admit_is_a_bad_request_without_a_wait() -> None:
    reply = PreflightReply(
        decision=Decision.NEVER_ADMISSIBLE, reason="day_tokens", limits=LIMITS, shadowed=()
    )
    problem = refusal(reply, "m")
    assert problem is not None
    assert (problem.status, problem.code) == (400, "request_exceeds_limit")
    assert "retry-after" not in problem.headers


def test_a_refusal_tells_who_would_have_refused_as_well() -> None:
    shadowed = (LimitReason.TOKENS, LimitReason.CONCURRENCY)
    reply = PreflightReply(decision=Decision.RATE_LIMITED, shadowed=shadowed)
    problem = refusal(reply, "m")
    assert problem is not None
    assert problem.headers["x-ratelimit-shadow"] == "tokens, concurrency"


@pytest.mark.parametrize(
    ("prices", "found"),
    [
        pytest.param((price("1"), price("2")), [("a", "1"), ("b", "2")], id="both"),
        pytest.param((None, price("2")), [("b", "2")], id="only the second is priced"),
        pytest.param((price("1"),), [("a", "1")], id="a reply that says less"),
        pytest.param((), [], id="a reply that says nothing"),
    ],
)
def test_legs(prices: tuple[Price | None, ...], found: list[tuple[str, str]]) -> None:
    ways = legs(ROUTES.models["one"], prices)
    assert [(leg.target.provider.name, leg.price.price_id) for leg in ways] == found


def test_routes_of_this_table() -> None:
    assert isinstance(ROUTES, Routes)
    assert list(ROUTES.models) == ["one", "two", "mixed"]
