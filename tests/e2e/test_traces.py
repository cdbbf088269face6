"""One trace from the client through every service to the ledger, as a collector gets to see it."""

import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import openai
import pytest
from collector import Collector, Seen, collector
from e2e.operator import MODEL, Operator
from stacks import new_stack

from fake_provider.behaviour import fake
from quotagate.stack import Stack

PROMPT = "the prompt that nobody else may ever read"
SAY: Any = [{"role": "user", "content": PROMPT}]
CLIENT_SPAN = "00f067aa0ba902b7"
# A service exports once a second; when these have arrived, so has all that they are parts of.
ENDS = ("POST /v1/chat/completions", "settle record")


@pytest.fixture(scope="module")
def spans() -> Iterator[Collector]:
    with collector() as found:
        yield found


@pytest.fixture(scope="module")
def traced(spans: Collector) -> Iterator[Stack]:
    """A stack whose requests are traced only where they ask for it."""
    settings = {"QUOTAGATE_TRACES_ENDPOINT": spans.url, "QUOTAGATE_TRACES_SAMPLE": "0"}
    with new_stack("traces", **settings) as stack:
        stack.up()
        yield stack


@pytest.fixture(scope="module")
async def operator(traced: Stack) -> AsyncIterator[Operator]:
    operator = Operator(traced)
    yield operator
    await operator.close()


class Call:
    """A trace of the client's."""

    def __init__(self, *, sampled: bool = True) -> None:
        self.trace_id = secrets.token_hex(16)
        self.headers = {"traceparent": f"00-{self.trace_id}-{CLIENT_SPAN}-{sampled:02x}"}


def _named(trace: list[Seen], name: str) -> Seen:
    (span,) = [span for span in trace if span.name == name]
    return span


def _has(*names: str) -> Callable[[list[Seen]], bool]:
    """Say whether these have arrived, and whatever the spans that have arrived are parts of."""

    def has(trace: list[Seen]) -> bool:
        known = {span.span_id for span in trace} | {CLIENT_SPAN}
        connected = all(span.parent_id in known for span in trace)
        return connected and set(names) <= {span.name for span in trace}

    return has


async def test_a_call_is_one_trace_from_its_client_to_the_ledger(
    operator: Operator, spans: Collector
) -> None:
    team, call = await operator.open_team(), Call()
    async with team.openai() as client:
        answer = await client.chat.completions.with_raw_response.create(
            model=MODEL,
            messages=SAY,
            metadata=fake(prompt_tokens=1000, cached_tokens=400, completion_tokens=50),
            extra_headers=call.headers,
        )
    (record,) = await operator.settled(team.team_id)
    assert record["trace_id"] == call.trace_id
    answers = [f"answer {name}" for name in ANSWERS]
    trace = await spans.trace(call.trace_id, _has(*ENDS, *answers))

    about = {
        "quotagate.team_id": team.team_id,
        "quotagate.inference_id": answer.headers["x-inference-id"],
    }
    request = _named(trace, "POST /v1/chat/completions")
    assert (request.service, request.kind, request.parent_id) == (
        "edge-proxy",
        "server",
        CLIENT_SPAN,
    )
    assert about.items() <= request.attributes.items()
    assert request.attributes["http.response.status_code"] == 200

    attempt = _named(trace, f"chat {MODEL}")
    assert (attempt.kind, attempt.parent_id, attempt.failed) == ("client", request.span_id, False)
    assert (about | ATTEMPT).items() <= attempt.attributes.items()
    assert attempt.start_ns <= attempt.events["first byte"] <= attempt.end_ns

    decision = _named(trace, "answer admission-preflight")
    assert decision.service == "admission"
    assert decision.attributes["quotagate.decision"] == "allowed"
    for name, service in ANSWERS.items():
        answered = _named(trace, f"answer {name}")
        asked = _named(trace, f"ask {name}")
        assert (answered.service, answered.parent_id) == (service, asked.span_id)
    assert _named(trace, "ask cache-balance-fill").parent_id == decision.span_id

    published = _named(trace, "publish INFERENCE_RECORDS")
    for name in ("store record", "settle record"):
        told = _named(trace, name)
        assert (told.service, told.parent_id) == ("settlement", published.span_id)
        assert (about | {"quotagate.attempt_no": 1}).items() <= told.attributes.items()
    assert _named(trace, "settle record").attributes["quotagate.state"] == "settled"


ATTEMPT = {
    "quotagate.attempt_no": 1,
    "quotagate.outcome": "succeeded",
    "quotagate.provider": "fake",
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": MODEL,
    "gen_ai.response.model": MODEL,
    "gen_ai.request.stream": False,
    "gen_ai.usage.input_tokens": 1000,
    "gen_ai.usage.cache_read.input_tokens": 400,
    "gen_ai.usage.output_tokens": 50,
    "http.response.status_code": 200,
    "server.address": "127.0.0.1",
}
# Each with who answers it; a new team's tier and balance are in nobody's cache.
ANSWERS = {
    "cache-key-resolve": "tier-cache",
    "admission-preflight": "admission",
    "cache-tier-resolve": "tier-cache",
    "cache-balance-fill": "tier-cache",
    "admission-postflight": "admission",
}


async def test_a_refusal_says_which_limit_it_was(operator: Operator, spans: Collector) -> None:
    team = await operator.open_team(await operator.open_tier(rpm=1, tpm=100_000))
    call = Call()
    async with team.openai() as client:
        await client.chat.completions.create(model=MODEL, messages=SAY)
        with pytest.raises(openai.RateLimitError):
            await client.chat.completions.create(
                model=MODEL, messages=SAY, extra_headers=call.headers
            )
    trace = await spans.trace(call.trace_id, _has("POST /v1/chat/completions"))
    request = _named(trace, "POST /v1/chat/completions")
    assert request.attributes["http.response.status_code"] == 429
    assert request.attributes["quotagate.code"] == "rate_limit_exceeded"
    assert request.attributes["quotagate.reason"] == "requests"
    assert not request.failed
    trace = await spans.trace(call.trace_id, _has("answer admission-preflight"))
    decision = _named(trace, "answer admission-preflight").attributes
    assert (decision["quotagate.decision"], decision["quotagate.reason"]) == (
        "rate_limited",
        "requests",
    )
    assert not [span for span in trace if span.name.startswith("chat ")]


async def test_a_stranger_is_told_why_in_the_trace_too(traced: Stack, spans: Collector) -> None:
    call, key = Call(), "sk-of-somebody-else"
    async with httpx.AsyncClient(base_url=traced.url("edge-proxy")) as client:
        answer = await client.post(
            "/v1/messages?api_key=secret-in-the-address",
            headers={"x-api-key": key, "tracestate": "vendor=secret-state", **call.headers},
            json={"model": MODEL, "messages": SAY},
        )
    assert answer.status_code == 401
    (request,) = await spans.trace(call.trace_id, bool)
    assert request.name == "POST /v1/messages"
    assert request.attributes["quotagate.reason"] == "invalid_api_key"
    for secret in (key, "secret-in-the-address", "secret-state"):
        assert not any(secret.encode() in body for body in spans.bodies)


async def test_a_fallback_is_two_attempts(operator: Operator, spans: Collector) -> None:
    team, call = await operator.open_team(), Call()
    async with team.openai() as client:
        await client.chat.completions.create(
            model="gpt-4o",
            messages=SAY,
            metadata=fake(status=503, fail_times=1, fail_key=team.team_id),
            extra_headers=call.headers,
        )
    trace = await spans.trace(call.trace_id, _has(*ENDS))
    first, second = _named(trace, "chat gpt-4o"), _named(trace, f"chat {MODEL}")
    assert (first.failed, second.failed) == (True, False)
    assert first.attributes["error.type"] == "503"
    numbers = [span.attributes["quotagate.attempt_no"] for span in (first, second)]
    assert numbers == [1, 2]
    assert first.parent_id == second.parent_id
    judged = [span for span in trace if span.name == "ask admission-preflight"]
    assert [span.attributes["quotagate.attempt_no"] for span in judged] == [1, 2]
    states = [s.attributes["quotagate.state"] for s in trace if s.name == "store record"]
    assert sorted(states) == ["pending", "unbillable"]


async def test_a_stream_ends_when_its_last_byte_left(operator: Operator, spans: Collector) -> None:
    team, call = await operator.open_team(), Call()
    async with team.openai() as client:
        stream = await client.chat.completions.create(
            model=MODEL,
            messages=SAY,
            stream=True,
            metadata=fake(chunk_count=20, prompt_tokens=10, completion_tokens=20),
            extra_headers=call.headers,
        )
        said = "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])
    trace = await spans.trace(call.trace_id, _has(*ENDS))
    attempt = _named(trace, f"chat {MODEL}")
    assert attempt.attributes["gen_ai.request.stream"] is True
    assert attempt.attributes["gen_ai.usage.output_tokens"] == 20
    assert attempt.start_ns <= attempt.events["first byte"] <= attempt.end_ns
    assert attempt.end_ns <= _named(trace, "POST /v1/chat/completions").end_ns
    assert said
    _hold_no_secret(spans, team.key, said)


def _hold_no_secret(spans: Collector, key: str, completion: str) -> None:
    """See that nothing that arrived holds a key's text, its secret, a prompt or a completion."""
    for secret in (key, key.rpartition("_")[2], PROMPT, completion):
        assert len(secret) > 5
        assert not any(secret.encode() in body for body in spans.bodies)


async def test_the_admin_api_is_traced_to_admission(
    operator: Operator, traced: Stack, spans: Collector
) -> None:
    team, call = await operator.open_team(), Call()
    token = traced.state.credentials.admin_token
    async with httpx.AsyncClient(base_url=f"{traced.url('control-plane')}/admin/v1") as client:
        answer = await client.get(
            f"/teams/{team.team_id}/limits",
            headers={"authorization": f"Bearer {token}", **call.headers},
        )
    assert answer.is_success
    trace = await spans.trace(
        call.trace_id, _has("GET /admin/v1/teams/{team_id}/limits", "answer admission-limits")
    )
    request = _named(trace, "GET /admin/v1/teams/{team_id}/limits")
    assert (request.service, request.attributes["quotagate.team_id"]) == (
        "control-plane",
        team.team_id,
    )
    assert not any(token.encode() in body for body in spans.bodies)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(Call(sampled=False).headers, id="its client doesn't want it"),
        pytest.param({}, id="none of its own, and a share of none is traced"),
        pytest.param({"traceparent": "00-zz-zz-01"}, id="malformed"),
    ],
)
async def test_what_is_not_sampled_leaves_no_span(
    operator: Operator, spans: Collector, headers: dict[str, str]
) -> None:
    team, after = await operator.open_team(), Call()
    async with team.openai() as client:
        for sent in (headers, after.headers):
            await client.chat.completions.create(model=MODEL, messages=SAY, extra_headers=sent)
    # What came later has arrived, so what there was before it would have.
    await spans.trace(after.trace_id, _has(*ENDS))
    of_the_team = {
        span.trace_id
        for span in spans.spans
        if span.attributes.get("quotagate.team_id") == team.team_id
    }
    assert of_the_team == {after.trace_id}
