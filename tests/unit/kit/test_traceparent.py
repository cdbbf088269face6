"""A span's name for others is read as it was written; whatever else comes is nobody's."""

import pytest

from kit.traceparent import TraceParent, parse

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"


@pytest.mark.parametrize("sampled", [True, False])
def test_what_is_written_is_read(*, sampled: bool) -> None:
    span = TraceParent(TRACE, SPAN, sampled)
    assert str(span) == f"00-{TRACE}-{SPAN}-{'01' if sampled else '00'}"
    assert parse(str(span)) == span


@pytest.mark.parametrize(
    ("flags", "sampled"),
    [
        pytest.param("03", True, id="sampled, and what comes later"),
        pytest.param("fe", False, id="everything else"),
    ],
)
def test_only_the_last_bit_says_whether(flags: str, *, sampled: bool) -> None:
    assert parse(f"00-{TRACE}-{SPAN}-{flags}") == TraceParent(TRACE, SPAN, sampled)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="none"),
        pytest.param("", id="empty"),
        pytest.param(f"ff-{TRACE}-{SPAN}-01", id="forbidden version"),
        pytest.param(f"00-{'0' * 32}-{SPAN}-01", id="no trace"),
        pytest.param(f"00-{TRACE}-{'0' * 16}-01", id="no span"),
        pytest.param(f"00-{TRACE.upper()}-{SPAN}-01", id="capitals"),
        pytest.param(f"00-{TRACE}-{SPAN}-1", id="half a byte"),
        pytest.param(f"00-{TRACE}-{SPAN}", id="no flags"),
        pytest.param(f"00-{TRACE}-{SPAN}-01\n", id="a line's end"),
        pytest.param("00-é-é-01", id="other letters"),
    ],
)
def test_anything_else_is_nobody_s(text: str | None) -> None:
    assert parse(text) is None
