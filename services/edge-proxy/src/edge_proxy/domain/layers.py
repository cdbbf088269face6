"""What the edge refuses by itself, before anybody is asked: too much from one address."""

from collections.abc import Mapping
from types import MappingProxyType

from contracts.limits import LimitScope
from edge_proxy.domain.problems import Problem
from edge_proxy.domain.ratelimit_headers import retry_headers, rfc3339
from edge_proxy.domain.reasons import HEADER, EdgeReason
from kit.connection_limits import Bound, Excess
from kit.paces import Paces

_FAILURES = Problem(
    429,
    "rate_limit_error",
    "too_many_failures",
    "Too many calls from this address had no valid API key.",
)
_CONNECTIONS = Problem(
    429, "rate_limit_error", "too_many_connections", "Too many connections from this address."
)
_REASONS: Mapping[Bound, EdgeReason] = MappingProxyType(
    {Bound.OPEN: EdgeReason.CONNECTIONS, Bound.RATE: EdgeReason.CONNECTION_RATE}
)


def too_many_connections(excess: Excess) -> Problem:
    """Return what the client of a connection is told that is one too many."""
    reason = _REASONS[excess.bound]
    details = _details(reason, excess.limit, excess.used, None)
    headers = {HEADER: reason.value, **retry_headers(excess.wait_us)}
    return _CONNECTIONS.with_headers(headers).with_details(details)


def too_many_failures(failures: Paces, debt_us: int, now_us: int) -> Problem:
    """Return what an address is told that may not try a key; `now_us` is unix time."""
    reason = EdgeReason.FAILED_AUTHENTICATIONS
    used = failures.used(debt_us)
    details = _details(reason, failures.most, used, rfc3339(now_us + debt_us))
    headers = {HEADER: reason.value, **retry_headers(failures.wait_us(debt_us))}
    return _FAILURES.with_headers(headers).with_details(details)


def _details(
    reason: EdgeReason, limit: int, used: int, resets_at: str | None
) -> dict[str, str | int | None]:
    return {
        "reason": reason.value,
        "scope": LimitScope.ADDRESS.value,
        "limit": limit,
        "used": used,
        "resets_at": resets_at,
    }
