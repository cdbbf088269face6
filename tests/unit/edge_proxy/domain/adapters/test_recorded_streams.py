"""Streams at the level of bytes, for each adapter: what comes out is what came in."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.edge_proxy.recorded import Recorded, cut, recorded, scan

from edge_proxy.domain.adapters.answer import Outgoing
from edge_proxy.domain.adapters.scanner import StreamReader

STREAMS = [case for case in recorded() if case.is_stream]
LINE_ENDS = {"LF": b"\n", "CRLF": b"\r\n", "CR": b"\r"}
PLACES = st.lists(st.integers(min_value=0), max_size=12)

each_stream = pytest.mark.parametrize("case", STREAMS, ids=lambda case: case.id)
each_line_end = pytest.mark.parametrize("line_end", LINE_ENDS.values(), ids=LINE_ENDS)


@each_line_end
@each_stream
@settings(max_examples=30)
@given(places=PLACES)
def test_without_anything_of_ours_it_is_the_same_bytes(
    case: Recorded, line_end: bytes, places: list[int]
) -> None:
    stream = case.body.replace(b"\n", line_end)
    scanner = case.scanner(hides_usage=False)
    assert scan(scanner, cut(stream, places)) + scanner.held == stream


@each_line_end
@each_stream
@settings(max_examples=30)
@given(places=PLACES)
def test_borders_change_nothing(case: Recorded, line_end: bytes, places: list[int]) -> None:
    stream = case.body.replace(b"\n", line_end)
    whole, pieces = case.scanner(hides_usage=True), case.scanner(hides_usage=True)
    passed = scan(whole, [stream])
    assert scan(pieces, cut(stream, places)) == passed
    assert (pieces.held, pieces.answer) == (whole.held, whole.answer)
    assert (pieces.complete, pieces.failed, pieces.ended) == (
        whole.complete,
        whole.failed,
        whole.ended,
    )


@each_stream
@settings(max_examples=30)
@given(places=PLACES)
def test_of_what_we_asked_for_nothing_is_seen(case: Recorded, places: list[int]) -> None:
    scanner = case.scanner(hides_usage=True)
    seen = scan(scanner, cut(case.body, places)) + scanner.held
    assert seen == _without_ours(case)


def _without_ours(case: Recorded) -> bytes:
    """Return a stream as a provider would send it that wasn't asked for usage."""
    events = re.findall(rb"[\s\S]*?\n\n", case.body)
    if not case.file.startswith(("chat", "completion")):
        return case.body
    kept = []
    for event in events:
        chunk = json.loads(event[6:]) if event.startswith(b"data: {") else {}
        if chunk.get("usage") and chunk["choices"] == []:
            continue
        has_null = "usage" in chunk and chunk["usage"] is None
        head, _, tail = event.rpartition(b',"usage":null')
        kept.append(head + tail if has_null else event)
    return b"".join(kept)


@each_stream
@settings(max_examples=30)
@given(place=st.integers(min_value=0))
def test_a_stream_cut_off_is_a_prefix_and_not_complete(case: Recorded, place: int) -> None:
    stream = case.body[: place % len(case.body)]
    scanner = case.scanner(hides_usage=False)
    assert scan(scanner, [stream]) + scanner.held == stream
    if not _tells_an_end(stream):
        assert not scanner.complete
        assert scanner.held == b""


def _tells_an_end(stream: bytes) -> bool:
    """Whether an event is in it, but for its blank line, that tells how the stream ended."""
    reasons = rb'"(?:finish|stop)_reason":"'
    events = rb"^data: \[DONE\]|^event: (?:message_stop|response\.\w+ed)$"
    return re.search(reasons + b"|" + events, stream, re.MULTILINE) is not None


@each_stream
def test_nothing_that_tells_of_success_leaves_before_its_record(case: Recorded) -> None:
    scanner = case.scanner(hides_usage=True)
    passed = scan(scanner, [case.body])
    for sign in (b"data: [DONE]", b"event: message_stop", b"event: response.completed"):
        assert sign not in passed
    if case.ends == "complete":
        assert scanner.held.rstrip().endswith(case.body.rstrip().splitlines()[-1])


@each_stream
@settings(max_examples=30)
@given(places=PLACES)
def test_an_endless_line_passes_and_memory_stays_bounded(case: Recorded, places: list[int]) -> None:
    stream = b"data: " + b"x" * 20_000 + b"\n\n" + case.body
    scanner = case.scanner(hides_usage=False, max_event_bytes=5_000)
    fed, passed = 0, b""
    for chunk in cut(stream, places):
        passed += scanner.feed(chunk)
        fed += len(chunk)
        # An event that is not complete, and twice that much of what is held back.
        assert fed - len(passed) <= 3 * 5_000 + len(chunk)
    passed += scanner.end()
    assert passed + scanner.held == stream
    assert scanner.answer.usage.chargeable == case.usage


class _Counting:
    """A reader that counts how often it had to decode."""

    def __init__(self, reader: StreamReader) -> None:
        self._reader = reader
        self.reads = 0
        self.worth_reading = reader.worth_reading
        self.trim = reader.trim

    def read(self, data: bytes) -> object:
        self.reads += 1
        return self._reader.read(data)


@pytest.mark.parametrize(
    ("file", "content", "reads"),
    [
        # The first event, which names the model, those that may carry usage, and the last.
        pytest.param("chat-separate.sse", b'"delta":{"content":"Hello"}', 4, id="chat"),
        pytest.param("completion.sse", b'"text":" a test"', 4, id="completions"),
        pytest.param("response.sse", b"response.output_text.delta", 2, id="responses"),
        pytest.param("message-thinking.sse", b"content_block_delta", 3, id="messages"),
    ],
)
def test_content_is_not_decoded(file: str, content: bytes, reads: int) -> None:
    (case,) = [case for case in STREAMS if case.file == file]
    events = re.findall(rb"[\s\S]*?\n\n", case.body)
    more = next(event for event in events if content in event)
    counting = _Counting(case.api.new_reader(Outgoing(b"", hides_usage=True)))
    scanner = case.scanner(hides_usage=True)
    scanner._reader = counting  # type: ignore[assignment] # counts in place of the real one
    at = events.index(more)
    for event in [*events[:at], *[more] * 1_000, *events[at:]]:
        scanner.feed(event)
    assert counting.reads == reads
