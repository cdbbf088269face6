"""Whether another attempt follows one that failed, where it goes, and after how long a wait.

The same deployment is tried again after a pause that doubles and has jitter, and never before the
provider asked to be; the next deployment of the route is tried at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Annotated, Literal, get_args

from pydantic import Field

from edge_proxy.domain.upstream import Failure

Named = Literal[
    "unreachable",
    "timeout",
    "disconnected",
    "invalid_answer",
    "answer_too_large",
    "auth_failed",
    "quota_exhausted",
]
Status = Annotated[int, Field(ge=400, le=599)]
"""A provider's status that has none of the names."""

NAMES: tuple[str, ...] = get_args(Named)

_PASSING = ("unreachable", "disconnected", "429", "500", "502", "503", "504", "529")
_OF_THIS_DEPLOYMENT = ("timeout", "invalid_answer", "auth_failed", "quota_exhausted", "408")
_MS_PER_S = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How persistent a route is. Times are of our monotonic clock."""

    attempts: int = 1
    """On each deployment, the first included."""
    on: frozenset[str] = frozenset(_PASSING)
    """The causes after which the same deployment is tried again."""
    fall_back_on: frozenset[str] = frozenset((*_PASSING, *_OF_THIS_DEPLOYMENT))
    """The causes after which the next deployment is tried."""
    backoff_ms: int = 250
    """The first pause at most; each further one on the same deployment is twice as long."""
    backoff_max_ms: int = 5_000
    wait_s: float = 10.0
    """All pauses of one inference together, those that a provider asked for included."""
    total_s: float = 300.0
    """After so long no further attempt begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How far an inference has come."""

    leg: int
    """The index of the leg that was tried last."""
    tries: int
    """Attempts on that leg, at least one."""
    waited_s: float
    """All pauses so far."""
    elapsed_s: float
    """Since the first attempt began."""


@dataclass(frozen=True, slots=True)
class Again:
    """One more attempt."""

    leg: int
    wait_s: float


def again(
    policy: RetryPolicy, failure: Failure, course: Course, legs: int, jitter: float
) -> Again | None:
    """Return where the next attempt goes; None: the failure is the client's answer.

    `legs` is how many there are; `jitter`, from 0 to 1, says how much of the pause's second half
    is waited.
    """
    if failure.cause in policy.on and course.tries < policy.attempts:
        pause_ms = min(policy.backoff_ms * 2 ** (course.tries - 1), policy.backoff_max_ms)
        wait_s = max(pause_ms * (0.5 + jitter / 2) / _MS_PER_S, failure.retry_after_s or 0)
        fits = course.waited_s + wait_s <= policy.wait_s
        if fits and course.elapsed_s + wait_s <= policy.total_s:
            return Again(course.leg, wait_s)
    is_last = course.leg + 1 >= legs
    if failure.cause in policy.fall_back_on and not is_last and course.elapsed_s <= policy.total_s:
        return Again(course.leg + 1, 0)
    return None


def asked_wait_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """Return how long a provider asks to be left alone; None: it doesn't say.

    Reads `retry-after-ms`, then `retry-after`: seconds, or a date, which is compared with `now_s`,
    unix seconds of our clock.
    """
    wait_ms = _number(headers.get("retry-after-ms"))
    if wait_ms is not None:
        return wait_ms / _MS_PER_S
    text = headers.get("retry-after")
    wait_s = _number(text)
    if wait_s is not None or text is None:
        return wait_s
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now_s)
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    # Neither "nan" nor "-1" is a wait; "inf" is one that never fits.
    return number if number >= 0 else None
