"""Orders about errors, waiting and broken connections, and what the journal says of them."""

import asyncio
import json
from typing import Any

import anthropic
import httpx
import openai
import pytest
from integration.fake_provider.asking import CHAT, MESSAGES, asked
from integration.fake_provider.process import API_KEY
from integration.fake_provider.sse import chunks_of, data_of
from integration.fake_provider.subject import Subject
from integration.fake_provider.witness import Witness

from fake_provider.behaviour import fake


@pytest.mark.parametrize(
    ("knobs", "error"),
    [
        pytest.param({"status": 400}, openai.BadRequestError, id="400"),
        pytest.param({"status": 401}, openai.AuthenticationError, id="401"),
        pytest.param({"status": 403}, openai.PermissionDeniedError, id="403"),
        pytest.param({"status": 404}, openai.NotFoundError, id="404"),
        pytest.param({"status": 409}, openai.ConflictError, id="409"),
        pytest.param({"status": 422}, openai.UnprocessableEntityError, id="422"),
        pytest.param({"status": 429}, openai.RateLimitError, id="429"),
        pytest.param({"status": 500}, openai.InternalServerError, id="500"),
        pytest.param({"status": 503}, openai.InternalServerError, id="503"),
        pytest.param({"status": 402}, openai.APIStatusError, id="402"),
    ],
)
async def test_error_status(
    fake_openai: openai.AsyncOpenAI, knobs: dict[str, Any], error: type[openai.APIStatusError]
) -> None:
    with pytest.raises(error) as raised:
        await fake_openai.chat.completions.create(
            model="m", messages=MESSAGES, metadata=fake(error_message="as ordered", **knobs)
        )

    assert raised.value.status_code == knobs["status"]
    assert "as ordered" in raised.value.message
    assert raised.value.type


async def test_error_type_and_code_and_headers(http: httpx.AsyncClient) -> None:
    answer = await http.post(
        CHAT,
        json=asked(
            status=429,
            error_type="tokens",
            error_code="insufficient_quota",
            retry_after_s=7,
            retry_after_ms=6500,
            headers={"x-should-retry": "false"},
        ),
    )

    assert answer.status_code == 429
    assert answer.json()["error"]["type"] == "tokens"
    assert answer.json()["error"]["code"] == "insufficient_quota"
    assert answer.headers["retry-after"] == "7"
    assert answer.headers["retry-after-ms"] == "6500"
    assert answer.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("status", [200, 502])
@pytest.mark.parametrize(
    ("body", "kind", "start"),
    [
        pytest.param("html", "text/html", b"<html>", id="html"),
        pytest.param("garbage", "application/json", b"\x00", id="garbage"),
        pytest.param("empty", "application/json", b"", id="empty"),
    ],
)
async def test_error_body_of_another_kind(
    http: httpx.AsyncClient, status: int, body: str, kind: str, start: bytes
) -> None:
    answer = await http.post(CHAT, json=asked(status=status, error_body=body))

    assert answer.status_code == status
    assert answer.headers["content-type"] == kind
    assert answer.content.startswith(start)
    with pytest.raises((json.JSONDecodeError, UnicodeDecodeError)):
        json.loads(answer.content)


async def test_anthropic_errors(
    fake_anthropic: anthropic.AsyncAnthropic, http: httpx.AsyncClient
) -> None:
    with pytest.raises(anthropic.APIStatusError) as raised:
        await fake_anthropic.messages.create(
            model="m",
            max_tokens=5,
            messages=MESSAGES,
            extra_body={"metadata": fake(status=529)},
        )
    assert raised.value.type == "overloaded_error"

    answer = await http.post(
        "/v1/messages",
        headers={"anthropic-version": "2023-06-01"},
        json={**asked(stream=True, error_after_chunks=1), "max_tokens": 50},
    )
    assert b"event: error\n" in answer.content
    assert b"message_stop" not in answer.content
    assert json.loads(data_of(answer.content)[-1])["error"]["type"] == "api_error"


async def test_fails_a_few_times_and_heals(subject_with_retries: openai.AsyncOpenAI) -> None:
    answer = await subject_with_retries.chat.completions.with_raw_response.create(
        model="m",
        messages=MESSAGES,
        metadata=fake(status=503, retry_after_ms=1, fail_times=2, fail_key="heals"),
    )

    assert answer.status_code == 200
    assert answer.retries_taken == 2


@pytest.fixture
def subject_with_retries(fake_openai: openai.AsyncOpenAI) -> openai.AsyncOpenAI:
    return fake_openai.with_options(max_retries=5)


async def test_error_in_the_middle_of_a_stream(
    fake_openai: openai.AsyncOpenAI, witness: Witness
) -> None:
    stream = await fake_openai.chat.completions.create(
        model="m",
        messages=MESSAGES,
        stream=True,
        metadata=fake(marker="error midway", error_after_chunks=2, error_message="overloaded"),
    )
    before = [await anext(stream) for _ in range(3)]
    assert [chunk.choices[0].delta.content for chunk in before] == ["", "Hello", " from"]
    with pytest.raises(openai.APIError, match="overloaded"):
        await anext(stream)
    assert (await witness.one(marker="error midway"))["outcome"] == "completed"


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize(
    ("knobs", "status"),
    [
        pytest.param({"drop": True}, 0, id="before the headers"),
        pytest.param({"stream": True, "drop_after_chunks": 1}, 200, id="in a stream"),
        pytest.param({"half_frame": True}, 200, id="in a body"),
    ],
)
async def test_how_the_connection_ends_that_is_dropped(
    fake_subject: Subject, witness: Witness, knobs: dict[str, Any], status: int, reset: bool
) -> None:
    marker = f"drop {knobs}, reset: {reset}"
    body = json.dumps(asked(marker=marker, reset=reset, **knobs)).encode()
    host, port = fake_subject.base_url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        b"POST %b HTTP/1.1\r\nhost: fake\r\nauthorization: Bearer %b\r\ncontent-length: %d\r\n\r\n"
        % (CHAT.encode(), API_KEY.encode(), len(body))
        + body
    )
    if reset:
        with pytest.raises(ConnectionResetError):
            await reader.read()
    else:
        assert (await reader.read()).startswith(b"HTTP/1.1 200" if status else b"")
        assert reader.at_eof()
    writer.close()

    seen = await witness.one(marker=marker, outcome="dropped")
    assert seen["status"] == status
    assert seen["usage"] is None


@pytest.mark.parametrize(
    "knobs",
    [
        pytest.param({"drop_after_chunks": 3}, id="between frames"),
        pytest.param({"drop_after_chunks": 3, "half_frame": True}, id="inside a frame"),
        pytest.param({"drop_after_chunks": 3, "split_bytes": 2}, id="after odd pieces"),
        pytest.param({"drop_after_chunks": 5}, id="before the finish"),
        pytest.param({"drop_after_chunks": 12}, id="after more chunks than there would be"),
    ],
)
async def test_drop_in_the_stream(
    http: httpx.AsyncClient, witness: Witness, knobs: dict[str, Any]
) -> None:
    marker = f"drop {knobs}"
    received = b""
    async with http.stream("POST", CHAT, json=asked(stream=True, marker=marker, **knobs)) as got:
        pieces = got.aiter_raw()
        with pytest.raises(httpx.RemoteProtocolError):  # noqa: PT012 - it may break at any piece
            while True:
                received += await anext(pieces)

    *whole, rest = received.split(b"\n\n")
    assert len(whole) == knobs["drop_after_chunks"] + 1
    assert bool(rest) == ("half_frame" in knobs)
    seen = await witness.one(marker=marker, outcome="dropped")
    assert seen["chunks_sent"] == knobs["drop_after_chunks"]
    assert seen["usage"] is None


@pytest.mark.parametrize("knob", [{"half_frame": True}, {"drop_after_chunks": 1}], ids=str)
async def test_drop_after_half_a_body(
    http: httpx.AsyncClient, witness: Witness, knob: dict[str, Any]
) -> None:
    with pytest.raises(httpx.RemoteProtocolError, match="complete message body"):
        await http.post(CHAT, json=asked(marker=f"half {knob}", **knob))

    assert (await witness.one(marker=f"half {knob}", outcome="dropped"))["usage"] is None


@pytest.mark.parametrize(
    "knobs",
    [
        pytest.param({"hang": True}, id="before the headers"),
        pytest.param({"hang_after_chunks": 1}, id="in the body"),
        pytest.param({"latency_ms": 600_000}, id="in its latency"),
        pytest.param({"gate": "never opened"}, id="at a gate"),
        pytest.param({"stream": True, "hang_after_chunks": 0}, id="after a stream's headers"),
        pytest.param({"stream": True, "hang_after_chunks": 2}, id="in a stream"),
        pytest.param({"stream": True, "first_chunk_ms": 600_000}, id="before the first chunk"),
        pytest.param({"stream": True, "chunk_interval_ms": 600_000}, id="between chunks"),
    ],
)
async def test_who_waits_in_vain_and_leaves_is_seen_to_leave(
    http: httpx.AsyncClient, witness: Witness, knobs: dict[str, Any]
) -> None:
    marker = f"left {knobs}"
    call = asyncio.create_task(http.post(CHAT, json=asked(marker=marker, **knobs)))
    await witness.one(marker=marker, outcome="in_flight")
    call.cancel()

    seen = await witness.one(marker=marker, outcome="client_gone")
    assert seen["usage"] is None
    assert seen["finished_at_us"] > seen["received_at_us"]


async def test_who_leaves_a_busy_stream_is_seen_to_leave(
    http: httpx.AsyncClient, witness: Witness
) -> None:
    body = asked(stream=True, marker="left busy", chunk_count=5_000, chunk_bytes=5_000)
    async with http.stream("POST", CHAT, json=body) as answer:
        await anext(answer.aiter_raw())

    seen = await witness.one(marker="left busy", outcome="client_gone")
    assert seen["chunks_sent"] < 5_000


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_gate(http: httpx.AsyncClient, witness: Witness, stream: bool) -> None:
    gate = f"gate, stream: {stream}"
    call = asyncio.create_task(http.post(CHAT, json=asked(stream=stream, marker=gate, gate=gate)))
    assert (await witness.one(marker=gate))["status"] == 0
    assert not call.done()
    await witness.open_gate(gate)

    assert (await call).status_code == 200
    assert (await witness.one(marker=gate, outcome="completed"))["status"] == 200


async def test_gate_in_the_stream(http: httpx.AsyncClient, witness: Witness) -> None:
    body = asked(stream=True, gate="midway", gate_after_chunks=2)
    received = b""
    async with http.stream("POST", CHAT, json=body) as answer:
        async for piece in answer.aiter_raw():
            received += piece
            if received.count(b"\n\n") == 3:
                await witness.open_gate("midway")

    assert len(chunks_of(received)) == 7


@pytest.mark.parametrize(
    ("knobs", "least_ms"),
    [
        pytest.param({"latency_ms": 120}, 120, id="latency"),
        pytest.param({"stream": True, "first_chunk_ms": 120}, 120, id="first chunk"),
        pytest.param(
            {"stream": True, "chunk_interval_ms": 30, "chunk_count": 5}, 120, id="between chunks"
        ),
        pytest.param({"slow_body_ms": 120}, 108, id="slow body, nine pauses of ten"),
        pytest.param({"latency_ms": 60, "status": 500}, 60, id="an error too"),
    ],
)
async def test_pace(
    http: httpx.AsyncClient, witness: Witness, knobs: dict[str, Any], least_ms: int
) -> None:
    """Not less than ordered, but that timers may fire a little early; more is up to the machine."""
    marker = f"pace {knobs}"
    await http.post(CHAT, json=asked(marker=marker, **knobs))

    seen = await witness.one(marker=marker, outcome="completed")
    assert seen["finished_at_us"] - seen["received_at_us"] >= (least_ms - 5) * 1000
