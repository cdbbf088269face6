"""What a trace tells of a request and of its attempts."""

from typing import Any

import pytest

from contracts.admission import Policy
from contracts.inference import Outcome
from contracts.usage import Price, Usage, UsdPerMillion
from edge_proxy.domain.adapters import ADAPTERS
from edge_proxy.domain.adapters.adapter import Traits
from edge_proxy.domain.adapters.answer import Answer
from edge_proxy.domain.endpoints import ENDPOINTS, MESSAGES, Endpoint
from edge_proxy.domain.inference import Attempt, Caller, Inference, Leg
from edge_proxy.domain.problems import BALANCE_NEGATIVE, INVALID_API_KEY, RATE_LIMITED, Problem
from edge_proxy.domain.routes import Provider, Target, TimeOuts
from edge_proxy.domain.spans import about_inference, about_problem, span_of
from edge_proxy.domain.usage import UsageReading, Verdict
from kit.traces.tracer import Kind

STARTED_US, FIRST_US, FINISHED_US = 10, 20, 30
FREE = UsdPerMillion(
    **dict.fromkeys(
        ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning"), 0
    )  # type: ignore[arg-type] # zero is zero
)


def _inference(endpoint: Endpoint = MESSAGES) -> Inference:
    return Inference(
        inference_id="inference",
        caller=Caller(team_id="team", key_id="key", allowed_models=None),
        endpoint=endpoint,
        model="asked",
        streaming=True,
        trace_id="trace",
    )


def _attempt(base_url: str = "https://user:secret@models.example/v1", **facts: Any) -> Attempt:
    provider = Provider(
        name="ours",
        adapter=ADAPTERS["anthropic"](Traits()),
        base_url=base_url,
        api_key="the provider's key",
        connect_s=1,
        proxy="http://user:secret@proxy.example",
    )
    price = Price(
        price_id="price", provider="ours", model="sent", usd_per_million=FREE, effective_from_us=0
    )
    attempt = Attempt(
        inference=_inference(),
        attempt_no=2,
        leg=Leg(target=Target(provider=provider, model="sent", timeouts=TimeOuts()), price=price),
        policy=Policy(tier_id="tier", rpm=1, tpm=1),
        started_at_us=STARTED_US,
    )
    for name, value in facts.items():
        setattr(attempt, name, value)
    return attempt


def test_an_attempt_that_succeeded() -> None:
    usage = Usage(
        input=1, cache_read=20, cache_write_5m=300, cache_write_1h=4000, output=5, reasoning=60
    )
    answer = Answer(UsageReading(Verdict.FOUND, usage, "{}"), "served")
    attempt = _attempt(answer=answer, status_code=200, first_byte_at_us=FIRST_US)
    span = span_of(attempt, Outcome.SUCCEEDED, FINISHED_US)
    assert (span.name, span.kind, span.error_type) == ("chat sent", Kind.CLIENT, None)
    assert (span.started_us, span.ended_us) == (STARTED_US, FINISHED_US)
    assert span.events == {"first byte": FIRST_US}
    assert span.attributes == {
        "quotagate.team_id": "team",
        "quotagate.inference_id": "inference",
        "quotagate.attempt_no": 2,
        "quotagate.provider": "ours",
        "quotagate.outcome": "succeeded",
        "quotagate.client_gone": False,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "sent",
        "gen_ai.request.stream": True,
        "gen_ai.response.model": "served",
        "gen_ai.usage.input_tokens": 4321,
        "gen_ai.usage.cache_read.input_tokens": 20,
        "gen_ai.usage.cache_creation.input_tokens": 4300,
        "gen_ai.usage.output_tokens": 65,
        "http.response.status_code": 200,
        "server.address": "models.example",
        "server.port": 443,
    }


@pytest.mark.parametrize(
    ("facts", "outcome", "error_type"),
    [
        pytest.param({"failure": "timeout"}, Outcome.FAILED, "timeout", id="no answer in time"),
        pytest.param({"failure": "503"}, Outcome.FAILED, "503", id="a provider's status"),
        pytest.param({"failure": "disconnected"}, Outcome.ABORTED, "disconnected", id="broke off"),
        pytest.param({}, Outcome.FAILED, "failed", id="an error within a stream"),
        pytest.param({}, Outcome.UNKNOWN, "unknown", id="told to leave meanwhile"),
    ],
)
def test_an_attempt_that_did_not(facts: Any, outcome: Outcome, error_type: str) -> None:
    span = span_of(_attempt(**facts), outcome, FINISHED_US)
    assert span.error_type == error_type
    assert span.events == {}
    assert not [name for name in span.attributes if name.startswith(("gen_ai.usage", "http."))]


@pytest.mark.parametrize(
    ("base_url", "port"),
    [("http://models.example", 80), ("http://models.example:8000/v1", 8000)],
)
def test_where_a_provider_is(base_url: str, port: int) -> None:
    attributes = span_of(_attempt(base_url), Outcome.SUCCEEDED, FINISHED_US).attributes
    assert (attributes["server.address"], attributes["server.port"]) == ("models.example", port)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.path)
def test_what_an_endpoint_does_has_a_name(endpoint: Endpoint) -> None:
    told = about_inference(_inference(endpoint))
    assert told["gen_ai.operation.name"] in {"chat", "text_completion", "embeddings"}
    assert told["gen_ai.request.model"] == "asked"


@pytest.mark.parametrize(
    ("problem", "code", "reason"),
    [
        pytest.param(INVALID_API_KEY, "invalid_api_key", "invalid_api_key", id="no limit"),
        pytest.param(BALANCE_NEGATIVE, "credit_balance_exhausted", "balance", id="the balance"),
        pytest.param(
            RATE_LIMITED.with_headers({"x-ratelimit-reason": "tokens"}),
            "rate_limit_exceeded",
            "tokens",
            id="a limit",
        ),
    ],
)
def test_why_a_request_was_refused(problem: Problem, code: str, reason: str) -> None:
    assert about_problem(problem) == {"quotagate.code": code, "quotagate.reason": reason}
