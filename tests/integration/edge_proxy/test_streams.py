"""Streams at the level of bytes: what passes, what is hidden, what waits, and how they end."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from integration.edge_proxy.raw_provider import HEAD, Conversation, RawProvider
from integration.edge_proxy.stand_ins import Latch
from integration.edge_proxy.world import CHAT, World, asked
from integration.fake_provider.process import API_KEY

from contracts.inference import Outcome, UsageSource
from contracts.usage import Usage

DONE = b"data: [DONE]"
STREAM = {"stream": True}
WITH_USAGE = {"stream": True, "stream_options": {"include_usage": True}}


async def directly(world: World, **body: Any) -> bytes:
    """Return what the provider itself answers to a body."""
    async with httpx.AsyncClient(base_url=world.provider.base_url) as http:
        answer = await http.post(CHAT, json=body, headers={"authorization": f"Bearer {API_KEY}"})
    return answer.content


def normal(stream: bytes) -> bytes:
    """Return a stream without the ids and times in which two calls of the fake provider differ."""
    stream = re.sub(rb'"(chatcmpl-|call_)[^"]*"', b'"\\1"', stream)
    return re.sub(rb'"created":[0-9]+', b'"created":0', stream)


def events(stream: bytes) -> list[Any]:
    return [json.loads(line[6:]) for line in stream.splitlines() if line.startswith(b"data: {")]


async def pieces(answer: httpx.Response) -> AsyncIterator[bytes]:
    async for piece in answer.aiter_raw():
        yield piece


@pytest.mark.parametrize(
    "knobs",
    [
        pytest.param({}, id="plain"),
        pytest.param({"unicode": True, "chunk_count": 12}, id="text of all kinds"),
        pytest.param({"tools": 2}, id="tool calls"),
        pytest.param({"comments": True}, id="comments"),
        pytest.param({"split_bytes": 1, "unicode": True, "chunk_count": 2}, id="cut everywhere"),
        pytest.param({"omit_done": True}, id="no last event"),
    ],
)
async def test_a_stream_passes_byte_by_byte(world: World, knobs: dict[str, Any]) -> None:
    team = world.team()
    body = asked(team, more=WITH_USAGE, **knobs)
    through = await world.http.post(CHAT, headers=team.headers, json=body)
    assert through.headers["content-type"].startswith("text/event-stream")
    assert normal(through.content) == normal(await directly(world, **body))
    record = await world.records.one(team.team_id)
    assert (record.outcome, record.usage_source) == (Outcome.SUCCEEDED, UsageSource.PROVIDER)


@pytest.mark.parametrize("knobs", [{}, {"crlf": True}, {"crlf": True, "split_bytes": 1}])
async def test_usage_nobody_asked_for_is_metered_and_hidden(
    world: World, knobs: dict[str, Any]
) -> None:
    team = world.team()
    knobs |= {"prompt_tokens": 100, "completion_tokens": 50}
    answer = await world.ask(team, more=STREAM, **knobs)
    assert [event["choices"] == [] for event in events(answer.content)].count(True) == 0
    assert b'"prompt_tokens"' not in answer.content
    assert answer.content.count(DONE) == 1
    record = await world.records.one(team.team_id)
    assert record.usage == Usage(input=100, output=50)
    (charged,) = world.stand_ins.postflights_of(team.team_id)
    assert charged.usage == record.usage
    seen = await world.witness.one(marker=team.team_id)
    assert seen["include_usage"] is True


@pytest.mark.parametrize(
    "shape", ["separate_chunk", "finish_chunk", "empty_delta", "role_finish", "every_chunk"]
)
async def test_every_shape_of_usage_is_the_same_charge(world: World, shape: str) -> None:
    team = world.team()
    answer = await world.ask(
        team,
        more=WITH_USAGE,
        usage_shape=shape,
        prompt_tokens=100,
        cached_tokens=40,
        completion_tokens=50,
    )
    assert answer.content.count(DONE) == 1
    assert (await world.records.one(team.team_id)).usage == Usage(
        input=60, cache_read=40, output=50
    )


@pytest.mark.parametrize(
    ("shape", "source"),
    [
        ("absent", UsageSource.MISSING),
        ("null", UsageSource.MISSING),
        ("string", UsageSource.MISSING),
        ("absurd", UsageSource.PROVIDER),
    ],
)
async def test_usage_that_cannot_be_charged_spoils_no_stream(
    world: World, shape: str, source: UsageSource
) -> None:
    team = world.team()
    answer = await world.ask(team, more=STREAM, usage_shape=shape)
    assert answer.content.count(DONE) == 1
    assert world.stand_ins.postflights_of(team.team_id) == []
    record = await world.records.one(team.team_id)
    assert (record.outcome, record.usage_source) == (Outcome.SUCCEEDED, source)


@pytest.mark.parametrize("options", [STREAM, WITH_USAGE], ids=["silent", "the client asks"])
async def test_a_provider_that_does_not_know_the_option(
    world: World, options: dict[str, Any]
) -> None:
    team = world.team()
    answer = await world.ask(
        team, model="simple", more=options, reject_stream_options=True, usage_shape="finish_chunk"
    )
    assert answer.status_code == 200
    assert answer.content.count(DONE) == 1
    assert (await world.records.one(team.team_id)).usage is not None


async def test_headers_leave_first_and_success_last(world: World) -> None:
    team, latch = world.team(), Latch()
    world.stand_ins.on_postflight[team.team_id] = latch.postflight
    body = asked(team, more=WITH_USAGE)
    seen = b""
    async with world.http.stream("POST", CHAT, headers=team.headers, json=body) as answer:
        # The state after preflight: nothing else is known yet.
        assert answer.headers["x-ratelimit-remaining-tokens"] == "60000"
        assert answer.headers["x-ratelimit-reset-requests"] == "1s"
        assert "x-inference-id" in answer.headers
        stream = pieces(answer)
        while b"provider." not in seen:
            seen += await anext(stream)
        await latch.reached.wait()
        assert await world.records.of(team.team_id) == []
        assert b'"finish_reason":"stop"' not in seen
        assert DONE not in seen
        latch.open.set()
        rest = b"".join([piece async for piece in stream])
    assert rest.index(b'"finish_reason":"stop"') < rest.index(b'"prompt_tokens"') < rest.index(DONE)
    assert len(await world.records.of(team.team_id)) == 1


async def test_a_silent_provider_is_bridged_by_comments(world: World) -> None:
    team = world.team()
    body = asked(team, more=STREAM, gate=team.team_id, gate_after_chunks=2)
    seen = b""
    async with world.http.stream("POST", CHAT, headers=team.headers, json=body) as answer:
        async for piece in answer.aiter_raw():
            seen += piece
            if seen.count(b": keep-alive\n\n") == 2:
                await world.witness.open_gate(team.team_id)
    assert seen.count(DONE) == 1
    assert b"\nid:" not in seen
    assert b"\n\n: keep-alive\n\n" in seen
    assert (await world.records.one(team.team_id)).usage is not None


@pytest.mark.parametrize(
    ("knobs", "code", "outcome"),
    [
        pytest.param({"drop_after_chunks": 3}, "provider_disconnected", Outcome.ABORTED, id="drop"),
        pytest.param(
            {"drop_after_chunks": 3, "reset": True},
            "provider_disconnected",
            Outcome.ABORTED,
            id="reset",
        ),
        pytest.param(
            {"drop_after_chunks": 3, "half_frame": True},
            "provider_disconnected",
            Outcome.ABORTED,
            id="half a frame",
        ),
        pytest.param({"drop_after_chunks": 0}, "provider_disconnected", Outcome.ABORTED, id="0"),
    ],
)
async def test_a_stream_that_breaks_off(
    world: World, knobs: dict[str, Any], code: str, outcome: Outcome
) -> None:
    team = world.team()
    answer = await world.ask(team, more=STREAM, chunk_count=6, **knobs)
    assert answer.status_code == 200
    assert DONE not in answer.content
    *_, last = events(answer.content)
    assert (last["error"]["type"], last["error"]["code"]) == ("upstream_error", code)
    record = await world.records.one(team.team_id)
    assert (record.outcome, record.usage_source) == (outcome, UsageSource.MISSING)
    assert world.stand_ins.postflights_of(team.team_id) == []


async def test_a_provider_that_falls_silent_for_good(world: World) -> None:
    team = world.team()
    answer = await world.ask(team, model="impatient", more=STREAM, hang_after_chunks=2)
    *_, last = events(answer.content)
    assert last["error"]["code"] == "provider_timeout"
    assert DONE not in answer.content
    assert (await world.records.one(team.team_id)).outcome is Outcome.ABORTED


async def test_usage_of_a_stream_that_breaks_off_is_charged(world: World) -> None:
    team = world.team()
    await world.ask(
        team, more=STREAM, usage_shape="every_chunk", chunk_count=6, drop_after_chunks=3
    )
    record = await world.records.one(team.team_id)
    assert record.outcome is Outcome.ABORTED
    assert record.usage is not None
    (charged,) = world.stand_ins.postflights_of(team.team_id)
    assert charged.usage == record.usage


async def test_an_error_in_the_stream_passes_as_it_came(world: World) -> None:
    team = world.team()
    answer = await world.ask(team, more=STREAM, error_after_chunks=2, error_code="their_code")
    errors = [event for event in events(answer.content) if "error" in event]
    assert [event["error"]["code"] for event in errors] == ["their_code"]
    assert DONE not in answer.content
    assert (await world.records.one(team.team_id)).outcome is Outcome.FAILED


async def test_a_stream_compressed_unasked(world: World) -> None:
    team = world.team()
    answer = await world.ask(team, more=STREAM, gzip_unasked=True, completion_tokens=9)
    assert answer.content.count(DONE) == 1
    usage = (await world.records.one(team.team_id)).usage
    assert usage is not None
    assert usage.output == 9


async def test_an_event_too_large_to_hold_passes(world: World) -> None:
    team = world.team()
    body = asked(team, more=WITH_USAGE, endless_line_bytes=400_000)
    answer = await world.http.post(CHAT, headers=team.headers, json=body)
    assert len(answer.content) > 400_000
    assert normal(answer.content) == normal(await directly(world, **body))
    assert (await world.records.one(team.team_id)).usage is not None


async def test_an_answer_that_is_no_stream_though_one_was_asked_for(
    world: World, raw: RawProvider
) -> None:
    team = world.team()
    body = b'{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}'

    async def whole(conversation: Conversation) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        await conversation.say(head % len(body) + body)

    raw.script = whole
    answer = await world.ask(team, model="raw", more=STREAM)
    assert (answer.content, answer.headers["content-type"]) == (body, "application/json")
    assert (await world.records.one(team.team_id)).usage == Usage(input=3, output=4)


@pytest.mark.parametrize(
    ("tail", "complete"),
    [
        pytest.param(b"data: [DONE]\n", True, id="no blank line at the end"),
        pytest.param(b"data: [DONE]", True, id="no line end at all"),
        pytest.param(b"", False, id="nothing"),
        pytest.param(b'data: {"cho', False, id="half an event"),
    ],
)
async def test_ends_of_streams(world: World, raw: RawProvider, tail: bytes, complete: bool) -> None:
    team = world.team()
    first = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'

    async def script(conversation: Conversation) -> None:
        await conversation.say(HEAD)
        await conversation.chunk(first)
        if tail:
            await conversation.chunk(tail)
        await conversation.chunk(b"")

    raw.script = script
    answer = await world.ask(team, model="raw", more=STREAM)
    assert answer.content.startswith(first)
    outcome = (await world.records.one(team.team_id)).outcome
    if complete:
        assert answer.content == first + tail
        assert outcome is Outcome.SUCCEEDED
    else:
        (error,) = events(answer.content)[1:]
        assert error["error"]["code"] == "provider_incomplete_stream"
        assert outcome is Outcome.ABORTED


async def test_garbage_instead_of_a_stream(world: World, raw: RawProvider) -> None:
    team = world.team()

    async def script(conversation: Conversation) -> None:
        await conversation.say(HEAD)
        await conversation.chunk(b"\x00\xff\x1f{{{" * 100)
        await conversation.chunk(b"")

    raw.script = script
    answer = await world.ask(team, model="raw", more=STREAM)
    (error,) = events(answer.content)
    assert error["error"]["code"] == "provider_incomplete_stream"
    assert (await world.records.one(team.team_id)).outcome is Outcome.ABORTED


async def test_the_connection_is_used_again_after_a_stream(world: World, raw: RawProvider) -> None:
    team = world.team()
    before = len(raw.conversations)

    async def script(conversation: Conversation) -> None:
        await conversation.say(HEAD)
        await conversation.chunk(DONE + b"\n\n")
        await conversation.chunk(b"")
        # A second request on the same connection.
        await conversation.reader.readuntil(b"\r\n\r\n")
        raw.conversations.append(conversation)

    raw.script = script
    await world.ask(team, model="raw", more=STREAM)
    again = asyncio.create_task(world.ask(team, model="raw", more=STREAM))
    await asyncio.wait([again], timeout=10)
    assert len(raw.conversations) == before + 2
    assert raw.conversations[-1] is raw.conversations[-2]
