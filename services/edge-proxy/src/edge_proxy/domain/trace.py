"""The trace that a request belongs to (W3C Trace Context)."""

import secrets

from kit.traceparent import parse


def trace_id(traceparent: bytes | None) -> str:
    """Return the caller's trace id, or a new one where it sent none that is valid."""
    caller = parse(traceparent.decode("latin-1")) if traceparent else None
    return secrets.token_hex(16) if caller is None else caller.trace_id
