"""Events are the same however their bytes were cut on the way."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_proxy.domain.sse import EventBuffer, data_of, split

LINE_ENDS = (b"\n", b"\r\n", b"\r")
# What str.splitlines would take for a line's end, and what is more than one byte.
TEXTS = ("a", '{"x":"\u2028\u2029\x85\x0b\x0c\x1c"}', "äöü€😀", "", " two words ")


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    """Events with the line ends of one stream, as servers write them."""
    line_end = draw(st.sampled_from(LINE_ENDS))
    lines = st.sampled_from([f"data: {text}".encode() for text in TEXTS] + [b": ping", b"event: x"])
    events = draw(st.lists(st.lists(lines, min_size=1, max_size=3), min_size=1, max_size=6))
    return [b"".join(line + line_end for line in event) + line_end for event in events]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(bounds)]


@given(streams(), st.lists(st.integers(min_value=0), max_size=12))
def test_events_do_not_depend_on_chunk_borders(events: list[bytes], places: list[int]) -> None:
    buffer = EventBuffer(max_event_bytes=1_000_000)
    passed, found = b"", []
    for chunk in cut(b"".join(events), places):
        unsearched, whole = buffer.feed(chunk)
        assert unsearched == b""
        passed += whole
        found += [data_of(event) for event in split(whole)] if whole else []
    rest = buffer.rest()
    assert passed + rest == b"".join(events)
    found.append(data_of(rest))
    assert [data for data in found if data is not None] == [
        data for data in map(data_of, events) if data is not None
    ]


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(min_value=1, max_value=64))
def test_no_byte_is_lost_or_moved(chunks: list[bytes], max_event_bytes: int) -> None:
    buffer = EventBuffer(max_event_bytes)
    passed = b"".join(b"".join(buffer.feed(chunk)) for chunk in chunks)
    assert passed + buffer.rest() == b"".join(chunks)


@given(st.lists(st.sampled_from([b"x" * 50, b"\n", b"\r", b"data: y"]), max_size=40))
def test_what_is_kept_stays_bounded(chunks: list[bytes]) -> None:
    buffer = EventBuffer(max_event_bytes=100)
    fed = given_out = 0
    for chunk in chunks:
        fed += len(chunk)
        given_out += sum(map(len, buffer.feed(chunk)))
        assert fed - given_out <= 100 + len(chunk)


def test_events_are_found_again_after_one_that_was_too_large() -> None:
    buffer = EventBuffer(max_event_bytes=10)
    assert buffer.feed(b"data: " + b"x" * 20) == (b"data: " + b"x" * 17, b"")
    assert not buffer.between_events
    assert buffer.feed(b"\n") == (b"x", b"")
    assert buffer.feed(b"\ndata: y\n\n") == (b"xx\n\n", b"data: y\n\n")
    assert buffer.between_events


@pytest.mark.parametrize(
    ("event", "data"),
    [
        pytest.param(b"data: x\n\n", b"x", id="one line"),
        pytest.param(b"data:x\n\n", b"x", id="no space"),
        pytest.param(b"data:  x\n\n", b" x", id="only the first space goes"),
        pytest.param(b"data: a\r\ndata: b\r\n\r\n", b"a\nb", id="lines are joined by LF"),
        pytest.param(b"event: e\rdata: x\r\r", b"x", id="CR, and another field"),
        pytest.param(b": comment\n\n", None, id="a comment"),
        pytest.param(b"\n\n", None, id="nothing"),
        pytest.param(b"data\n\n", None, id="a field without a colon"),
        pytest.param("data: a\u2028b\n\n".encode(), "a\u2028b".encode(), id="U+2028 is text"),
    ],
)
def test_data(event: bytes, data: bytes | None) -> None:
    assert data_of(event) == data
