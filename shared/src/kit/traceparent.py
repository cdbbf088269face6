"""The name that one span has for others (W3C Trace Context): a trace's id, a span's, a word on it.

A pure function each way. What is not of this form is nobody's trace: its reader begins a new one.
"""

import re
from dataclasses import dataclass

_FORM = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_NO_TRACE = "0" * 32
_NO_SPAN = "0" * 16
_SAMPLED = 1


@dataclass(frozen=True, slots=True)
class TraceParent:
    """A span of another process."""

    trace_id: str
    """32 digits, hexadecimal."""
    span_id: str
    """16 digits, hexadecimal."""
    sampled: bool
    """Whether whoever began the trace wants it recorded."""

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{self.sampled:02x}"


def parse(text: str | None) -> TraceParent | None:
    """Return whose trace goes on; None: a new one begins."""
    match = _FORM.fullmatch(text or "")
    if match is None or match[1] == _NO_TRACE or match[2] == _NO_SPAN:
        return None
    return TraceParent(match[1], match[2], bool(int(match[3], 16) & _SAMPLED))
