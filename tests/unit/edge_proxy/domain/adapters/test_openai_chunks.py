"""Streams of chat completions: what the client sees, what waits for the ack, what is metered."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.usage import Usage
from edge_proxy.domain.adapters.adapter import Traits
from edge_proxy.domain.adapters.answer import Outgoing
from edge_proxy.domain.adapters.openai import openai
from edge_proxy.domain.adapters.scanner import StreamScanner
from edge_proxy.domain.endpoints import CHAT_COMPLETIONS
from edge_proxy.domain.usage import Verdict

DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3}
CHARGE = Usage(input=7, output=3)


def event(**members: Any) -> bytes:
    text = json.dumps({"id": "c", "model": "m-1", **members}, ensure_ascii=False)
    return f"data: {text}\n\n".encode()


def content(text: str, **members: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return event(choices=[choice], **members)


def finish(index: int = 0, **members: Any) -> bytes:
    choice = {"index": index, "delta": {}, "finish_reason": "stop"}
    return event(choices=[choice], **members)


def usage_chunk(usage: Any = USAGE) -> bytes:
    return event(choices=[], usage=usage)


HELLO = content("hel", usage=None) + content("lo \u2028 wörld", usage=None)


def new_scanner(max_event_bytes: int, *, hides_usage: bool) -> StreamScanner:
    api = openai(Traits()).apis[CHAT_COMPLETIONS.path]
    return api.scanner(Outgoing(b"", hides_usage), max_event_bytes)


def scan(*chunks: bytes, hides_usage: bool = True) -> tuple[bytes, StreamScanner]:
    stream = new_scanner(1_000_000, hides_usage=hides_usage)
    passed = b"".join(stream.feed(chunk) for chunk in chunks)
    return passed + stream.end(), stream


@pytest.mark.parametrize(
    ("stream", "seen", "held"),
    [
        pytest.param(
            [HELLO, finish(usage=None), usage_chunk(), DONE],
            HELLO,
            finish(usage=None) + DONE,
            id="a separate chunk, which is hidden",
        ),
        pytest.param(
            [HELLO, finish(usage=USAGE), DONE],
            HELLO,
            finish(usage=USAGE) + DONE,
            id="on the finish chunk",
        ),
        pytest.param(
            [HELLO, finish(), content("", usage=USAGE), DONE],
            HELLO,
            finish() + content("", usage=USAGE) + DONE,
            id="on an empty delta",
        ),
        pytest.param(
            [finish(usage=USAGE), DONE],
            b"",
            finish(usage=USAGE) + DONE,
            id="on the only chunk",
        ),
        pytest.param(
            [
                content("a", usage={"prompt_tokens": 7, "completion_tokens": 1}),
                content("b", usage={"prompt_tokens": 7, "completion_tokens": 2}),
                finish(usage=USAGE),
                DONE,
            ],
            content("a", usage={"prompt_tokens": 7, "completion_tokens": 1})
            + content("b", usage={"prompt_tokens": 7, "completion_tokens": 2}),
            finish(usage=USAGE) + DONE,
            id="growing on every chunk",
        ),
        pytest.param(
            [HELLO, finish(), usage_chunk({**USAGE, "completion_tokens": None}), usage_chunk()],
            HELLO,
            finish(),
            id="the last value that isn't null, and no last event",
        ),
        pytest.param(
            [HELLO, finish(), usage_chunk(), DONE[:-2]],
            HELLO,
            finish() + DONE[:-2],
            id="no blank line at the end",
        ),
    ],
)
def test_usage_is_found_and_success_waits(stream: list[bytes], seen: bytes, held: bytes) -> None:
    passed, scanner = scan(*stream)
    assert (passed, scanner.held) == (seen, held)
    assert scanner.answer.usage.usage == CHARGE
    assert scanner.answer.model_served == "m-1"
    assert scanner.complete
    assert not scanner.failed


def test_a_client_that_asked_sees_the_usage_once() -> None:
    passed, scanner = scan(HELLO, finish(), usage_chunk(), DONE, hides_usage=False)
    assert (passed + scanner.held).count(usage_chunk()) == 1
    assert scanner.held == finish() + usage_chunk() + DONE


def test_another_choice_releases_what_was_held() -> None:
    other = content("more")
    passed, scanner = scan(finish(0), other, finish(1), DONE)
    assert passed == finish(0) + other
    assert scanner.held == finish(1) + DONE


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
@given(places=st.lists(st.integers(min_value=0), max_size=15))
def test_borders_of_chunks_change_nothing(line_end: bytes, places: list[int]) -> None:
    shown = [b": ping\n\n", content("hel", usage=None), content("lo \u2028 wörld \x85")]
    last = [finish(), b": ping\n\n", DONE]
    stream = b"".join([*shown, last[0], usage_chunk(), *last[1:]]).replace(b"\n", line_end)
    bounds = [0, *sorted({place % len(stream) for place in places}), len(stream)]
    chunks = [stream[start:end] for start, end in itertools.pairwise(bounds)]
    passed, scanner = scan(*chunks)
    without_usage = b"".join([*shown, *last]).replace(b"\n", line_end)
    assert passed + scanner.held == without_usage
    assert scanner.held.startswith(finish()[:-2])
    assert scanner.answer.usage.usage == CHARGE
    assert scanner.ended


@given(st.lists(st.binary(max_size=30), max_size=20), st.booleans())
def test_garbage_passes_as_it_came(chunks: list[bytes], hides_usage: bool) -> None:
    passed, scanner = scan(*chunks, hides_usage=hides_usage)
    assert passed + scanner.held == b"".join(chunks)
    assert scanner.answer.usage.verdict is Verdict.MISSING


@pytest.mark.parametrize(
    ("stream", "complete", "failed"),
    [
        pytest.param([HELLO], False, False, id="cut off"),
        pytest.param([HELLO, finish()[:40]], False, False, id="half a frame"),
        pytest.param([HELLO, finish()], True, False, id="no last event, but a finish reason"),
        pytest.param([HELLO, DONE], True, False, id="no finish reason, but a last event"),
        pytest.param([HELLO, event(error={"message": "x"})], False, True, id="an error event"),
        pytest.param([event(error=None, choices=[])], False, False, id="no error"),
        pytest.param([b"<html>no</html>"], False, False, id="no stream at all"),
    ],
)
def test_how_a_stream_ended(stream: list[bytes], complete: bool, failed: bool) -> None:
    _, scanner = scan(*stream)
    assert (scanner.complete, scanner.failed) == (complete, failed)


@pytest.mark.parametrize(
    ("usage", "verdict"),
    [
        pytest.param("many", Verdict.UNREADABLE, id="text"),
        pytest.param({"prompt_tokens": "7"}, Verdict.UNREADABLE, id="a count as text"),
        pytest.param({"prompt_tokens": 10**10}, Verdict.ABSURD, id="absurd"),
        pytest.param(None, Verdict.MISSING, id="null"),
    ],
)
def test_usage_that_cannot_be_charged(usage: Any, verdict: Verdict) -> None:
    _, scanner = scan(HELLO, finish(), usage_chunk(usage), DONE)
    assert scanner.answer.usage.verdict is verdict
    assert scanner.answer.usage.chargeable is None


def test_words_about_usage_in_a_text_are_text() -> None:
    trap = content('"usage": {"prompt_tokens": 9999} [DONE] "finish_reason": "stop"')
    passed, scanner = scan(trap, finish(), usage_chunk(), DONE)
    assert passed == trap
    assert scanner.answer.usage.usage == CHARGE


def test_what_is_held_is_bounded() -> None:
    stream = new_scanner(1_000, hides_usage=False)
    passed = b"".join(stream.feed(finish()) for _ in range(100))
    assert len(stream.held) <= 2_000
    assert passed + stream.held == finish() * 100
