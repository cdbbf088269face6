"""Orders about content, usage and bytes of an answer that arrives."""

import gzip
import json
from typing import Any

import anthropic
import httpx
import openai
import pytest
from integration.fake_provider.sse import chunks_of, data_of, text_of
from integration.fake_provider.witness import Witness

from fake_provider.behaviour import fake
from fake_provider.domain.usage import ABSURD_TOKENS

_MESSAGES: list[Any] = [{"role": "user", "content": "three words here"}]
_CHAT = "/v1/chat/completions"


async def _post(http: httpx.AsyncClient, **more: Any) -> httpx.Response:
    return await http.post(_CHAT, json={"model": "m", "messages": _MESSAGES, **more})


async def _stream(http: httpx.AsyncClient, *, asked: bool = True, **knobs: Any) -> bytes:
    options = {"stream_options": {"include_usage": True}} if asked else {}
    answer = await _post(http, stream=True, metadata=fake(**knobs), **options)
    assert answer.status_code == 200
    return answer.content


async def test_usage_of_every_class(fake_openai: openai.AsyncOpenAI) -> None:
    answer = await fake_openai.chat.completions.create(
        model="m",
        messages=_MESSAGES,
        metadata=fake(
            prompt_tokens=10_000,
            cached_tokens=8_000,
            cache_write_tokens=500,
            completion_tokens=1_000,
            reasoning_tokens=50,
            usage_extra={"images": 3},
        ),
    )

    usage = answer.usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (10_000, 1_000)
    assert usage.total_tokens == 11_000
    assert usage.prompt_tokens_details is not None
    assert usage.prompt_tokens_details.cached_tokens == 8_000
    assert usage.prompt_tokens_details.cache_write_tokens == 500
    assert usage.completion_tokens_details is not None
    assert usage.completion_tokens_details.reasoning_tokens == 50
    assert usage.model_extra == {"images": 3}


async def test_usage_without_orders_is_words_in_and_chunks_out(
    fake_openai: openai.AsyncOpenAI,
) -> None:
    answer = await fake_openai.chat.completions.create(model="m", messages=_MESSAGES)

    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (3, 5)
    assert answer.choices[0].message.content == "Hello from the fake provider."


_WHOLE = {"prompt_tokens": 100, "completion_tokens": 40, "total_tokens": 140}


@pytest.mark.parametrize(
    ("shape", "asked", "expected"),
    [
        pytest.param("separate_chunk", True, ["", "", "", "", "usage, no choice"], id="separate"),
        pytest.param("separate_chunk", False, ["", "", "", ""], id="separate, not asked for"),
        pytest.param("finish_chunk", False, ["", "", "", "usage, finish"], id="with the finish"),
        pytest.param(
            "empty_delta", False, ["", "", "", "", "usage, choice"], id="with an empty delta"
        ),
        pytest.param(
            "role_finish", False, ["", "", "", "usage, finish"], id="with role and finish"
        ),
        pytest.param("absent", True, ["", "", "", ""], id="absent although asked for"),
    ],
)
async def test_where_a_stream_carries_its_usage(
    http: httpx.AsyncClient, shape: str, asked: bool, expected: list[str]
) -> None:
    def describe(chunk: dict[str, Any]) -> str:
        if not chunk.get("usage"):
            return ""
        assert _WHOLE.items() <= chunk["usage"].items()
        if not chunk["choices"]:
            return "usage, no choice"
        return "usage, finish" if chunk["choices"][0]["finish_reason"] else "usage, choice"

    stream = await _stream(
        http,
        asked=asked,
        usage_shape=shape,
        chunk_count=2,
        prompt_tokens=100,
        completion_tokens=40,
    )

    chunks = chunks_of(stream)
    assert [describe(chunk) for chunk in chunks] == expected
    if shape == "role_finish":
        assert chunks[-1]["choices"][0]["delta"]["role"] == "assistant"


async def test_usage_on_every_chunk_is_cumulative(http: httpx.AsyncClient) -> None:
    stream = await _stream(http, usage_shape="every_chunk", chunk_count=3, completion_tokens=10)

    tokens = [chunk["usage"]["completion_tokens"] for chunk in chunks_of(stream)]
    assert tokens == [0, 3, 6, 10, 10]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        pytest.param("null", {"usage": None}, id="null"),
        pytest.param("string", {"usage": "12 tokens"}, id="a string"),
        pytest.param("absent", {}, id="absent"),
    ],
)
async def test_usage_that_is_none(
    http: httpx.AsyncClient, witness: Witness, shape: str, expected: dict[str, Any]
) -> None:
    marker = f"no usage: {shape}"
    answer = await _post(http, metadata=fake(marker=marker, usage_shape=shape))
    streamed = chunks_of(await _stream(http, marker=marker, usage_shape=shape))

    assert {key: value for key, value in answer.json().items() if key == "usage"} == expected
    if shape != "absent":
        assert streamed[-1]["choices"] == []
        assert streamed[-1]["usage"] == expected["usage"]
    counts = await witness.counts(marker=marker)
    assert (counts["requests"], counts["with_usage"]) == (2, 0)


async def test_absurd_usage(http: httpx.AsyncClient) -> None:
    answer = await _post(http, metadata=fake(usage_shape="absurd"))

    assert answer.json()["usage"]["prompt_tokens"] == ABSURD_TOKENS
    assert answer.json()["usage"]["completion_tokens"] == ABSURD_TOKENS


@pytest.mark.parametrize(
    ("knobs", "chunks", "size_bytes"),
    [
        pytest.param({}, 5, None, id="as it is"),
        pytest.param({"chunk_count": 100}, 100, None, id="a hundred"),
        pytest.param({"chunk_count": 0}, 0, None, id="none at all"),
        pytest.param({"chunk_count": 3, "chunk_bytes": 1000}, 3, 1000, id="of a thousand bytes"),
        pytest.param({"endless_line_bytes": 300_000}, 6, None, id="one endless line in front"),
        pytest.param({"text": "to be or not"}, 4, None, id="a given text"),
    ],
)
async def test_chunks(
    http: httpx.AsyncClient,
    witness: Witness,
    knobs: dict[str, Any],
    chunks: int,
    size_bytes: int | None,
) -> None:
    stream = chunks_of(await _stream(http, marker=repr(knobs), **knobs))
    pieces = [piece for chunk in stream if (piece := text_of([chunk]))]

    assert len(pieces) == chunks
    if size_bytes is not None:
        assert {len(piece.encode()) for piece in pieces} == {size_bytes}
    if "endless_line_bytes" in knobs:
        assert len(pieces[0]) == 300_000
    if "text" in knobs:
        assert "".join(pieces) == knobs["text"]
    assert (await witness.one(marker=repr(knobs)))["chunks_sent"] == chunks


@pytest.mark.parametrize(
    "knobs",
    [
        pytest.param({"crlf": True}, id="lines end in CR LF"),
        pytest.param({"comments": True}, id="comments between frames"),
        pytest.param({"split_bytes": 1}, id="every byte alone"),
        pytest.param({"split_bytes": 1, "crlf": True, "comments": True}, id="all of these"),
        pytest.param({"split_bytes": 7, "crlf": True}, id="seven bytes at a time"),
    ],
)
@pytest.mark.parametrize("text", ["ascii", "unicode"])
async def test_odd_bytes_mean_the_same(
    http: httpx.AsyncClient, fake_openai: openai.AsyncOpenAI, knobs: dict[str, Any], text: str
) -> None:
    plain = await _stream(http, unicode=text == "unicode")
    odd = await _stream(http, unicode=text == "unicode", **knobs)

    assert odd != plain or "split_bytes" in knobs
    assert odd.count(b"\r\n") == (odd.count(b"\n") if "crlf" in knobs else 0)
    assert odd.count(b": keep-alive") == (len(data_of(odd)) if "comments" in knobs else 0)
    assert text_of(chunks_of(odd)) == text_of(chunks_of(plain))
    stream = await fake_openai.chat.completions.create(
        model="m",
        messages=_MESSAGES,
        stream=True,
        metadata=fake(unicode=text == "unicode", **knobs),
    )
    seen = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert "".join(seen) == text_of(chunks_of(plain))


async def test_split_streams_arrive_in_pieces(http: httpx.AsyncClient) -> None:
    asked = {
        "model": "m",
        "messages": _MESSAGES,
        "stream": True,
        "metadata": fake(unicode=True, split_bytes=1),
    }
    async with http.stream("POST", _CHAT, json=asked) as answer:
        pieces = [piece async for piece in answer.aiter_raw()]

    assert {len(piece) for piece in pieces} == {1}
    assert "\u2028" in b"".join(pieces).decode()


@pytest.mark.parametrize("stream", [False, True])
async def test_gzip_unasked(http: httpx.AsyncClient, stream: bool) -> None:
    asked = {
        "model": "m",
        "messages": _MESSAGES,
        "stream": stream,
        "metadata": fake(gzip_unasked=True),
    }
    async with http.stream("POST", _CHAT, json=asked) as answer:
        body = gzip.decompress(b"".join([piece async for piece in answer.aiter_raw()]))

    assert answer.request.headers["accept-encoding"] == "identity"
    assert answer.headers["content-encoding"] == "gzip"
    text = text_of(chunks_of(body)) if stream else json.loads(body)["choices"][0]["message"]
    assert "Hello" in str(text)


async def test_stream_without_done(http: httpx.AsyncClient) -> None:
    stream = await _stream(http, omit_done=True)

    assert json.loads(data_of(stream)[-1])["usage"]["total_tokens"] == 8


async def test_tool_calls(fake_openai: openai.AsyncOpenAI) -> None:
    stream = await fake_openai.chat.completions.create(
        model="m", messages=_MESSAGES, stream=True, metadata=fake(tools=2, chunk_count=4)
    )
    arguments = {0: "", 1: ""}
    count = 0
    async for chunk in stream:
        for part in chunk.choices[0].delta.tool_calls or ():
            assert part.function is not None
            arguments[part.index] += part.function.arguments or ""
            count += 1

    assert count == 8
    assert {json.loads(text)["city"] for text in arguments.values()} == {"Zürich"}


async def test_headers_and_model(http: httpx.AsyncClient) -> None:
    ordered = {"X-RateLimit-Limit-Requests": "7", "connection": "keep-alive, x-hop", "x-hop": "1"}
    answer = await _post(http, metadata=fake(headers=ordered, model_served="m-2026-01-01"))

    assert answer.json()["model"] == "m-2026-01-01"
    assert answer.headers["x-ratelimit-limit-requests"] == "7"
    assert answer.headers["x-hop"] == "1"
    assert answer.headers["x-request-id"].startswith("req_")


async def test_stream_options_refused(http: httpx.AsyncClient) -> None:
    metadata = fake(reject_stream_options=True)
    options = {"stream_options": {"include_usage": True}}

    assert (await _post(http, stream=True, metadata=metadata)).status_code == 200
    refused = await _post(http, stream=True, metadata=metadata, **options)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "stream_options"


async def test_unknown_order_is_refused_by_name(http: httpx.AsyncClient) -> None:
    answer = await _post(http, metadata={"fake": '{"latencyms": 1}'})

    assert answer.status_code == 400
    assert "latencyms" in answer.json()["error"]["message"]


@pytest.mark.parametrize("shape", ["separate_chunk", "finish_chunk"])
async def test_anthropic_usage(fake_anthropic: anthropic.AsyncAnthropic, shape: str) -> None:
    knobs: dict[str, Any] = {
        "prompt_tokens": 100,
        "cached_tokens": 50,
        "cache_write_tokens": 20,
        "cache_write_1h_tokens": 5,
        "completion_tokens": 40,
        "usage_shape": shape,
    }
    stream = await fake_anthropic.messages.create(
        model="claude",
        max_tokens=100,
        messages=_MESSAGES,
        stream=True,
        extra_body={"metadata": fake(**knobs)},
    )
    events = [event async for event in stream]

    start, delta = events[0], events[-2]
    assert start.type == "message_start"
    usage = start.message.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens) == (100, 50)
    assert usage.cache_creation_input_tokens == 25
    assert usage.cache_creation is not None
    assert usage.cache_creation.ephemeral_5m_input_tokens == 20
    assert usage.cache_creation.ephemeral_1h_input_tokens == 5
    assert usage.output_tokens == 1
    assert delta.type == "message_delta"
    assert delta.usage.output_tokens == 40
    assert delta.usage.input_tokens == (100 if shape == "finish_chunk" else None)


@pytest.mark.parametrize(
    ("knobs", "last"),
    [
        pytest.param({}, "response.completed", id="completed"),
        pytest.param({"finish_reason": "length"}, "response.incomplete", id="incomplete"),
        pytest.param({"error_after_chunks": 2}, "response.failed", id="failed"),
    ],
)
async def test_responses_carry_their_usage_in_the_last_event(
    fake_openai: openai.AsyncOpenAI, knobs: dict[str, Any], last: str
) -> None:
    stream = await fake_openai.responses.create(
        model="m",
        input="three words here",
        stream=True,
        metadata=fake(completion_tokens=7, reasoning_tokens=2, **knobs),
    )
    events = [event async for event in stream]

    assert [event.sequence_number for event in events] == list(range(len(events)))
    final: Any = events[-1]
    assert final.type == last
    assert final.response.usage.input_tokens == 3
    assert final.response.usage.output_tokens == 7
    assert final.response.usage.output_tokens_details.reasoning_tokens == 2
