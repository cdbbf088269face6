"""A caller's trace goes on; anything else begins one."""

import re

import pytest

from edge_proxy.domain.trace import trace_id

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"


@pytest.mark.parametrize("suffix", ["", "-what-comes-later"])
def test_a_trace_goes_on(suffix: str) -> None:
    assert trace_id(f"00-{TRACE}-{SPAN}-01{suffix}".encode()) == TRACE


@pytest.mark.parametrize(
    "traceparent",
    [
        None,
        b"",
        b"x",
        f"ff-{TRACE}-{SPAN}-01".encode(),
        f"00-{'0' * 32}-{SPAN}-01".encode(),
        f"00-{TRACE}-{'0' * 16}-01".encode(),
        f"00-{TRACE.upper()}-{SPAN}-01".encode(),
        f"00-{TRACE[1:]}-{SPAN}-01".encode(),
        f"00-{TRACE}-{SPAN}-01\n".encode(),
    ],
)
def test_a_trace_begins(traceparent: bytes | None) -> None:
    begun = trace_id(traceparent)
    assert re.fullmatch("[0-9a-f]{32}", begun)
    assert begun != TRACE
    assert trace_id(traceparent) != begun
