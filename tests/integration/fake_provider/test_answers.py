"""Orders about content and bytes of an answer that arrives."""

import gzip
import json
from typing import Any

import httpx
import openai
import pytest
from integration.fake_provider.asking import CHAT, MESSAGES, post, stream_of
from integration.fake_provider.sse import chunks_of, data_of, text_of
from integration.fake_provider.witness import Witness

from fake_provider.behaviour import fake


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
    stream = chunks_of(await stream_of(http, marker=repr(knobs), **knobs))
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
    plain = await stream_of(http, unicode=text == "unicode")
    odd = await stream_of(http, unicode=text == "unicode", **knobs)

    assert odd != plain or "split_bytes" in knobs
    assert odd.count(b"\r\n") == (odd.count(b"\n") if "crlf" in knobs else 0)
    assert odd.count(b": keep-alive") == (len(data_of(odd)) if "comments" in knobs else 0)
    assert text_of(chunks_of(odd)) == text_of(chunks_of(plain))
    stream = await fake_openai.chat.completions.create(
        model="m",
        messages=MESSAGES,
        stream=True,
        metadata=fake(unicode=text == "unicode", **knobs),
    )
    seen = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert "".join(seen) == text_of(chunks_of(plain))


async def test_split_streams_arrive_in_pieces(http: httpx.AsyncClient) -> None:
    asked = {
        "model": "m",
        "messages": MESSAGES,
        "stream": True,
        "metadata": fake(unicode=True, split_bytes=1),
    }
    async with http.stream("POST", CHAT, json=asked) as answer:
        pieces = [piece async for piece in answer.aiter_raw()]

    assert {len(piece) for piece in pieces} == {1}
    assert "\u2028" in b"".join(pieces).decode()


@pytest.mark.parametrize("stream", [False, True])
async def test_gzip_unasked(http: httpx.AsyncClient, stream: bool) -> None:
    asked = {
        "model": "m",
        "messages": MESSAGES,
        "stream": stream,
        "metadata": fake(gzip_unasked=True),
    }
    async with http.stream("POST", CHAT, json=asked) as answer:
        body = gzip.decompress(b"".join([piece async for piece in answer.aiter_raw()]))

    assert answer.request.headers["accept-encoding"] == "identity"
    assert answer.headers["content-encoding"] == "gzip"
    text = text_of(chunks_of(body)) if stream else json.loads(body)["choices"][0]["message"]
    assert "Hello" in str(text)


async def test_stream_without_done(http: httpx.AsyncClient) -> None:
    stream = await stream_of(http, omit_done=True)

    assert json.loads(data_of(stream)[-1])["usage"]["total_tokens"] == 8


async def test_tool_calls(fake_openai: openai.AsyncOpenAI) -> None:
    stream = await fake_openai.chat.completions.create(
        model="m", messages=MESSAGES, stream=True, metadata=fake(tools=2, chunk_count=4)
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
    answer = await post(http, metadata=fake(headers=ordered, model_served="m-2026-01-01"))

    assert answer.json()["model"] == "m-2026-01-01"
    assert answer.headers["x-ratelimit-limit-requests"] == "7"
    assert answer.headers["x-hop"] == "1"
    assert answer.headers["x-request-id"].startswith("req_")


async def test_stream_options_refused(http: httpx.AsyncClient) -> None:
    metadata = fake(reject_stream_options=True)
    options = {"stream_options": {"include_usage": True}}

    assert (await post(http, stream=True, metadata=metadata)).status_code == 200
    refused = await post(http, stream=True, metadata=metadata, **options)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "stream_options"


async def test_unknown_order_is_refused_by_name(http: httpx.AsyncClient) -> None:
    answer = await post(http, metadata={"fake": '{"latencyms": 1}'})

    assert answer.status_code == 400
    assert "latencyms" in answer.json()["error"]["message"]
