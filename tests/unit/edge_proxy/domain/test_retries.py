"""What follows a failure: the same deployment, the next one, or the client's answer."""

import pytest

from edge_proxy.domain.retries import Again, Course, RetryPolicy, again, asked_wait_s
from edge_proxy.domain.shapes import OPENAI_SHAPE
from edge_proxy.domain.upstream import (
    AUTH_FAILED,
    QUOTA_EXHAUSTED,
    TIMED_OUT,
    UNREACHABLE,
    Failure,
    cause_of,
    reply_of,
)

REPLY = reply_of(UNREACHABLE, OPENAI_SHAPE)
POLICY = RetryPolicy(attempts=3, backoff_ms=1_000, backoff_max_ms=3_000, wait_s=10, total_s=60)
LEGS = 2
NO_JITTER, FULL_JITTER = 0.0, 1.0


def failure(cause: str | None, retry_after_s: float | None = None) -> Failure:
    return Failure(REPLY, cause, retry_after_s)


def course(leg: int = 0, tries: int = 1, waited_s: float = 0, elapsed_s: float = 0) -> Course:
    return Course(leg=leg, tries=tries, waited_s=waited_s, elapsed_s=elapsed_s)


@pytest.mark.parametrize(
    ("failed", "so_far", "expected"),
    [
        pytest.param(failure("503"), course(), Again(0, 1.0), id="the same again"),
        pytest.param(failure("503"), course(tries=2), Again(0, 2.0), id="twice the pause"),
        pytest.param(failure("503"), course(tries=3), Again(1, 0), id="often enough: the next"),
        pytest.param(failure("503"), course(leg=1, tries=3), None, id="there is no next"),
        pytest.param(failure("timeout"), course(), Again(1, 0), id="only elsewhere"),
        pytest.param(failure("auth_failed"), course(), Again(1, 0), id="another account"),
        pytest.param(failure("400"), course(), None, id="the request's own fault"),
        pytest.param(failure(None), course(), None, id="not the provider's fault"),
        pytest.param(failure("429", 4), course(), Again(0, 4), id="as long as it asks"),
        pytest.param(failure("429", 0.1), course(), Again(0, 1.0), id="never less than the pause"),
        pytest.param(failure("429", 11), course(), Again(1, 0), id="it asks for too long"),
        pytest.param(failure("429", 4), course(waited_s=7), Again(1, 0), id="waited enough"),
        pytest.param(failure("429", float("inf")), course(leg=1), None, id="it asks for ever"),
        pytest.param(failure("503"), course(elapsed_s=59.5), Again(1, 0), id="no time to wait"),
        pytest.param(failure("503"), course(elapsed_s=60.5), None, id="no time at all"),
    ],
)
def test_what_follows(failed: Failure, so_far: Course, expected: Again | None) -> None:
    assert again(POLICY, failed, so_far, LEGS, FULL_JITTER) == expected


@pytest.mark.parametrize(
    ("tries", "jitter", "wait_s"),
    [
        pytest.param(1, NO_JITTER, 0.5, id="half the pause at least"),
        pytest.param(2, NO_JITTER, 1.0, id="half of the double"),
        pytest.param(9, FULL_JITTER, 3.0, id="it stops growing"),
    ],
)
def test_pauses(tries: int, jitter: float, wait_s: float) -> None:
    policy = RetryPolicy(attempts=10, backoff_ms=1_000, backoff_max_ms=3_000)
    step = again(policy, failure("503"), course(tries=tries), LEGS, jitter)
    assert step == Again(0, wait_s)


def test_by_itself_a_route_asks_each_deployment_once() -> None:
    assert again(RetryPolicy(), failure("503"), course(), LEGS, FULL_JITTER) == Again(1, 0)
    assert again(RetryPolicy(), failure("503"), course(), 1, FULL_JITTER) is None


def test_a_policy_says_what_counts() -> None:
    policy = RetryPolicy(attempts=2, on=frozenset({"418"}), fall_back_on=frozenset())
    assert again(policy, failure("418"), course(), LEGS, NO_JITTER) is not None
    assert again(policy, failure("503"), course(), LEGS, NO_JITTER) is None


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"retry-after": "7"}, 7, id="seconds"),
        pytest.param({"retry-after": "0.5"}, 0.5, id="a fraction"),
        pytest.param({"retry-after": "7", "retry-after-ms": "6500"}, 6.5, id="milliseconds"),
        pytest.param({"retry-after": "7", "retry-after-ms": "soon"}, 7, id="a word and seconds"),
        pytest.param({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 10, id="a date"),
        pytest.param({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, 0, id="a date gone by"),
        pytest.param({"retry-after": "soon"}, None, id="a word"),
        pytest.param({"retry-after": "-1"}, None, id="less than nothing"),
        pytest.param({"retry-after": "nan"}, None, id="no number"),
        pytest.param({"retry-after": "Thu, 01 Jan 99999 00:00:10 GMT"}, None, id="no such year"),
    ],
)
def test_what_a_provider_asks_for(headers: dict[str, str], wait_s: float | None) -> None:
    assert asked_wait_s(headers, now_s=90) == wait_s


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        pytest.param(cause_of(UNREACHABLE, None), "unreachable", id="no connection"),
        pytest.param(cause_of(TIMED_OUT, None), "timeout", id="our time-out"),
        pytest.param(cause_of(TIMED_OUT, 504), "504", id="its own time-out"),
        pytest.param(cause_of(AUTH_FAILED, 403), "auth_failed", id="our key"),
        pytest.param(cause_of(QUOTA_EXHAUSTED, 429), "quota_exhausted", id="our account"),
        pytest.param(cause_of(None, 400), "400", id="the request"),
    ],
)
def test_what_a_policy_calls_it(cause: str, expected: str) -> None:
    assert cause == expected
