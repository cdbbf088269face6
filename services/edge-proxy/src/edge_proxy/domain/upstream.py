"""How a provider's failure is shown: as ours where it says nothing about the client's request."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from edge_proxy.domain.problems import Problem
from edge_proxy.domain.shapes import Shape

ERROR_SOURCE = "x-quotagate-error-source"
FROM_UPSTREAM = MappingProxyType({ERROR_SOURCE: "upstream"})

_UNAUTHORIZED, _PAYMENT_REQUIRED, _FORBIDDEN = 401, 402, 403
_REQUEST_TIMEOUT, _TOO_MANY, _GATEWAY_TIMEOUT = 408, 429, 504
_FIRST_OK, _FIRST_REDIRECT, _FIRST_CLIENT_ERROR, _FIRST_SERVER_ERROR = 200, 300, 400, 500


def _upstream(status: int, code: str, message: str) -> Problem:
    return Problem(status, "upstream_error", code, message, headers=FROM_UPSTREAM)


UNREACHABLE = _upstream(502, "provider_unreachable", "The provider can't be reached.")
FAILED = _upstream(502, "provider_failed", "The provider failed.")
DISCONNECTED = _upstream(
    502, "provider_disconnected", "The provider's connection ended before its answer did."
)
INVALID_ANSWER = _upstream(
    502, "provider_invalid_answer", "The provider's answer can't be understood."
)
ANSWER_TOO_LARGE = _upstream(
    502, "provider_answer_too_large", "The provider's answer is too large."
)
INCOMPLETE = _upstream(
    502, "provider_incomplete_stream", "The provider's stream ended without its last event."
)
# Not the client's credentials but the gateway's: shown as 401 or 402 they would send it looking
# for a fault of its own.
AUTH_FAILED = _upstream(
    502, "provider_auth_failed", "The provider refused the gateway's credentials."
)
QUOTA_EXHAUSTED = _upstream(
    502, "provider_quota_exhausted", "The gateway's account at the provider is exhausted."
).with_headers({"x-should-retry": "false"})
TIMED_OUT = _upstream(504, "provider_timeout", "The provider didn't answer in time.")


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer for a client."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Failure:
    """How an attempt failed, and what a client gets when it was the last one."""

    reply: Reply
    cause: str | None = None
    """What a route's policy calls it: a name, or the provider's status; None: nothing that another
    attempt could mend."""
    retry_after_s: float | None = None
    """How long the provider asks to be left alone."""


def reply_of(problem: Problem, shape: Shape) -> Reply:
    """Return a problem as an answer in the words of the API that was called."""
    headers = {**problem.headers, "content-type": "application/json"}
    return Reply(problem.status, headers, shape.error(problem))


def cause_of(problem: Problem | None, status: int | None) -> str:
    """Return what a policy calls a provider's failure.

    `status` is that of an answer that wasn't a success, None where there was no such answer.
    """
    if problem is not None and (status is None or problem in (AUTH_FAILED, QUOTA_EXHAUSTED)):
        return problem.code.removeprefix("provider_")
    return str(status)


def is_success(status: int) -> bool:
    """Say whether a provider's status promises an answer."""
    return _FIRST_OK <= status < _FIRST_REDIRECT


def shown_instead(status: int, code: str | None) -> Problem | None:
    """Return what a client sees instead of a provider's error; None: the error is the client's.

    `status` isn't a success; `code` is the error's code as the provider's API spells it.
    """
    if status in (_UNAUTHORIZED, _FORBIDDEN):
        return AUTH_FAILED
    if status == _PAYMENT_REQUIRED or code == "insufficient_quota":
        return QUOTA_EXHAUSTED
    if status in (_REQUEST_TIMEOUT, _GATEWAY_TIMEOUT):
        return TIMED_OUT
    if status >= _FIRST_SERVER_ERROR:
        return FAILED
    if status < _FIRST_CLIENT_ERROR:
        return INVALID_ANSWER
    return None


def unreadable_refusal(status: int) -> Problem:
    """Return what a client sees where the provider refused its request without a readable word."""
    if status == _TOO_MANY:
        message = "The provider's rate limit was exceeded."
        return Problem(
            status, "rate_limit_error", "provider_rate_limited", message, headers=FROM_UPSTREAM
        )
    return _upstream(status, "provider_refused", "The provider refused the request.")
