"""Every endpoint with a real provider process: headers both ways, bytes, usage, refusals."""

import re
from typing import Any

import httpx
import pytest
from anthropic import AsyncAnthropic
from integration.edge_proxy.calls import (
    BODIES,
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    MESSAGES,
    RESPONSES,
    VERSION,
    each_endpoint,
    each_stream,
    headers_of,
    post,
)
from integration.edge_proxy.stand_ins import BEFORE
from integration.edge_proxy.world import Team, World
from integration.fake_provider.process import API_KEY
from openai import AsyncOpenAI

from contracts.admission import Decision, PreflightReply, PreflightRequest
from contracts.inference import Outcome, UsageSource
from contracts.usage import Usage
from fake_provider.behaviour import fake

SECRETS = dict.fromkeys(
    (
        "proxy-authorization",
        "cookie",
        "api-key",
        "x-auth-token",
        "x-goog-api-key",
        "x-amz-security-token",
        "x-csrf-token",
        "x-access-token",
        "x-session-id",
        "x-forwarded-for",
        "openai-organization",
        "openai-project",
        "x-stainless-lang",
        "x-custom",
    ),
    "a secret",
)


@each_endpoint
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_neither_side_sees_the_others_secrets(world: World, path: str, stream: bool) -> None:
    theirs = {
        "set-cookie": "a=b",
        "x-ratelimit-limit-requests": "9999",
        "anthropic-ratelimit-requests-limit": "9999",
        "anthropic-organization-id": "theirs",
        "openai-organization": "theirs",
    }
    team, answer = await post(world, path, sent=SECRETS, more={"stream": stream}, headers=theirs)
    assert answer.status_code == 200
    assert "theirs" not in str(answer.headers)
    assert "9999" not in str(answer.headers)
    assert "set-cookie" not in answer.headers
    seen = dict((await world.witness.one(marker=team.team_id))["headers"])
    assert "a secret" not in str(seen)
    assert team.key not in str(seen)
    assert not set(SECRETS) - {"x-api-key"} & set(seen)
    # What is left of all that a client and its library send.
    assert set(seen) <= {
        "host",
        "content-type",
        "content-length",
        "accept",
        "accept-encoding",
        "user-agent",
        "anthropic-version",
        "x-api-key" if path == MESSAGES else "authorization",
    }
    assert API_KEY in (seen.get("x-api-key", ""), seen.get("authorization", "")[len("Bearer ") :])


async def test_what_an_api_lets_clients_choose_by_header_passes(world: World) -> None:
    chosen = {"anthropic-version": "2023-01-01", "anthropic-beta": "one-2025-01-01,two-2025-02-02"}
    team, _ = await post(world, MESSAGES, sent=chosen)
    seen = dict((await world.witness.one(marker=team.team_id))["headers"])
    assert {name: seen[name] for name in chosen} == chosen


async def directly(world: World, path: str, **body: Any) -> bytes:
    """Return what the provider itself answers to a body."""
    async with httpx.AsyncClient(base_url=world.provider.base_url) as http:
        headers = {"authorization": f"Bearer {API_KEY}"} | VERSION
        return (await http.post(path, json=body, headers=headers)).content


def normal(answer: bytes) -> bytes:
    """Return an answer without the ids and times in which two calls of the provider differ."""
    ids = rb'"(chatcmpl-|cmpl-|resp_|msg_|call_|fc_|toolu_)[^"]*"'
    return re.sub(rb'"created(_at)?":[0-9]+', b"0", re.sub(ids, b'"id"', answer))


@each_endpoint
@pytest.mark.parametrize(
    "knobs",
    [
        pytest.param({}, id="plain"),
        pytest.param({"unicode": True, "chunk_count": 9, "split_bytes": 1}, id="cut everywhere"),
        pytest.param({"tools": 2, "comments": True}, id="tool calls, comments"),
        pytest.param({"crlf": True, "split_bytes": 3}, id="CRLF"),
        pytest.param({"gzip_unasked": True, "usage_extra": {"new": 7}}, id="compressed"),
    ],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_the_bytes_are_the_providers(
    world: World, path: str, knobs: dict[str, Any], stream: bool
) -> None:
    more: dict[str, Any] = {"stream": stream}
    if stream and path in (CHAT, COMPLETIONS):
        more["stream_options"] = {"include_usage": True}
    team, answer = await post(world, path, more=more, **knobs)
    body = BODIES[path] | {"metadata": fake(marker="directly", **knobs)} | more
    theirs = await directly(world, path, **body)
    assert normal(answer.content) == normal(theirs)
    record = await world.records.one(team.team_id)
    assert (record.endpoint, record.outcome) == (path, Outcome.SUCCEEDED)
    assert record.usage_source is UsageSource.PROVIDER


@each_stream
@pytest.mark.parametrize(
    ("shape", "source"),
    [
        ("absent", UsageSource.MISSING),
        ("null", UsageSource.MISSING),
        ("string", UsageSource.MISSING),
        ("absurd", UsageSource.PROVIDER),
    ],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_usage_that_cannot_be_charged(
    world: World, path: str, shape: str, source: UsageSource, stream: bool
) -> None:
    team, answer = await post(world, path, more={"stream": stream}, usage_shape=shape)
    assert answer.status_code == 200
    assert b"error" not in answer.content.replace(b'"error":null', b"")
    assert world.stand_ins.postflights_of(team.team_id) == []
    record = await world.records.one(team.team_id)
    assert (record.outcome, record.usage_source) == (Outcome.SUCCEEDED, source)


@pytest.mark.parametrize(
    ("path", "model"),
    [(MESSAGES, "plain"), (CHAT, "claude"), (EMBEDDINGS, "claude"), (RESPONSES, "claude")],
)
async def test_a_pair_that_is_not_supported_is_a_404_that_says_so(
    world: World, path: str, model: str
) -> None:
    team, answer = await post(world, path, more={"model": model})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (404, "unsupported_endpoint")
    assert error["message"] == f"The model '{model}' is not served at {path}."
    assert error["type"] == ("not_found_error" if path == MESSAGES else "invalid_request_error")
    assert world.stand_ins.preflights_of(team.team_id) == []
    assert await world.hits(team) == 0


@pytest.mark.parametrize(("path", "provider"), [(CHAT, "fake"), (MESSAGES, "claude")])
async def test_of_a_models_deployments_those_are_called_that_serve_the_endpoint(
    world: World, path: str, provider: str
) -> None:
    team, answer = await post(world, path, more={"model": "both"})
    assert answer.status_code == 200
    assert (await world.records.one(team.team_id)).provider == provider


async def test_a_key_that_may_not_use_a_model_learns_nothing_else_of_it(world: World) -> None:
    team = world.team(allowed_models=("plain",))
    answer = await world.http.post(
        CHAT, headers=team.headers, json=BODIES[CHAT] | {"model": "claude"}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "model_not_allowed")


async def test_a_response_in_the_background_is_refused(world: World) -> None:
    team, answer = await post(world, RESPONSES, more={"background": True})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "unsupported_parameter")
    assert error["param"] == "background"
    assert world.stand_ins.preflights_of(team.team_id) == []


async def test_a_rate_limit_in_the_headers_of_both(world: World) -> None:
    team = world.team()

    async def refuse(_request: PreflightRequest) -> PreflightReply:
        return PreflightReply(
            decision=Decision.RATE_LIMITED,
            reason="requests",
            retry_after_us=1_000_000,
            limits=BEFORE,
        )

    world.stand_ins.on_preflight[team.team_id] = refuse
    answer = await world.http.post(
        MESSAGES, headers=headers_of(team, MESSAGES), json=BODIES[MESSAGES]
    )
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert answer.headers["x-ratelimit-limit-tokens"] == "60000"
    assert answer.headers["anthropic-ratelimit-tokens-limit"] == "60000"
    assert answer.headers["anthropic-ratelimit-requests-remaining"] == "0"


@each_stream
async def test_a_comment_of_ours_passes_the_official_clients(world: World, path: str) -> None:
    """The edge says something every 0.2 s; the provider says nothing for 0.8 s."""
    orders: dict[str, Any] = {"first_chunk_ms": 800, "completion_tokens": 7, "text": "a b c"}
    _, answer = await post(world, path, more={"stream": True}, **orders)
    assert b": keep-alive\n\n" in answer.content
    assert b"\nid:" not in answer.content
    team = world.team()
    assert (
        await said_by_the_client(world, team, path, fake(marker=team.team_id, **orders)) == "a b c"
    )
    usage = (await world.records.one(team.team_id)).usage
    assert usage is not None
    assert usage.output == 7


async def said_by_the_client(
    world: World, team: Team, path: str, metadata: dict[str, str]
) -> str | None:
    body = BODIES[path] | {"stream": True}
    if path == MESSAGES:
        async with AsyncAnthropic(api_key=team.key, base_url=world.edge.url) as anthropic:
            messages = await anthropic.messages.create(**body, extra_body={"metadata": metadata})
            events: list[Any] = [event async for event in messages]
        deltas = [event.delta for event in events if event.type == "content_block_delta"]
        return "".join(delta.text for delta in deltas)
    async with AsyncOpenAI(api_key=team.key, base_url=f"{world.edge.url}/v1") as openai:
        api: Any = {
            CHAT: openai.chat.completions,
            COMPLETIONS: openai.completions,
            RESPONSES: openai.responses,
        }[path]
        chunks = await api.create(**body, extra_body={"metadata": metadata})
        events = [chunk async for chunk in chunks]
    if path == RESPONSES:
        return "".join(event.delta for event in events if event.type.endswith("text.delta"))
    choices = [event.choices[0] for event in events]
    texts = [one.text if path == COMPLETIONS else one.delta.content for one in choices]
    return "".join(text or "" for text in texts)


@pytest.mark.parametrize(
    ("path", "knobs"),
    [
        pytest.param(RESPONSES, {"finish_reason": "length"}, id="a response that is incomplete"),
        pytest.param(MESSAGES, {"finish_reason": "length"}, id="a message cut short"),
        pytest.param(MESSAGES, {"usage_shape": "finish_chunk"}, id="the delta repeats the input"),
        pytest.param(MESSAGES, {"omit_done": True}, id="no last event"),
    ],
)
async def test_other_ends_of_streams_are_charged_alike(
    world: World, path: str, knobs: dict[str, Any]
) -> None:
    orders = {"prompt_tokens": 100, "cached_tokens": 50, "completion_tokens": 40} | knobs
    team, answer = await post(world, path, more={"stream": True}, **orders)
    assert b'"error":{' not in answer.content
    record = await world.records.one(team.team_id)
    input_tokens = 50 if path == RESPONSES else 100
    assert record.outcome is Outcome.SUCCEEDED
    assert record.usage == Usage(input=input_tokens, cache_read=50, output=40)


@each_endpoint
async def test_fields_of_usage_that_nobody_knows_stay_in_the_record(
    world: World, path: str
) -> None:
    team, _ = await post(world, path, usage_extra={"moon_tokens": 7})
    reported = (await world.records.one(team.team_id)).usage_reported
    assert reported is not None
    assert '"moon_tokens":7' in reported
