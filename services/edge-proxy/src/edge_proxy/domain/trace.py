"""The trace that a request belongs to (W3C Trace Context)."""

import re
import secrets

_TRACEPARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")
_NO_TRACE = b"0" * 32
_NO_SPAN = b"0" * 16


def trace_id(traceparent: bytes | None) -> str:
    """Return the caller's trace id, or a new one where it sent none that is valid."""
    match = _TRACEPARENT.fullmatch(traceparent or b"")
    if match is None or match[1] == _NO_TRACE or match[2] == _NO_SPAN:
        return secrets.token_hex(16)
    return match[1].decode("ascii")
