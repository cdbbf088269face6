"""What an idempotency key means: the first request, one that goes on, a replay, or a refusal."""

import msgspec
import pytest

from contracts.idempotency import IdempotencyEntry, KeptAnswer, Progress
from edge_proxy.domain.endpoints import CHAT_COMPLETIONS, EMBEDDINGS
from edge_proxy.domain.idempotency import (
    INVALID_KEY,
    NOT_REPLAYABLE,
    OTHER_REQUEST,
    STILL_RUNNING,
    GoesOn,
    Meaning,
    Replay,
    Unused,
    entry_key,
    idempotency_key,
    meaning,
    request_hash,
)
from edge_proxy.domain.problems import Problem

LEASE_S = 30.0
ANSWER = KeptAnswer(status=200, headers={"content-type": "application/json"}, body=b"{}")
RUNNING = IdempotencyEntry(
    request_hash="h", inference_id="i", attempt_no=2, progress=Progress.RUNNING, holder="x"
)
OPEN = msgspec.structs.replace(RUNNING, progress=Progress.OPEN)
FINISHED = msgspec.structs.replace(RUNNING, progress=Progress.FINISHED, answer=ANSWER)


@pytest.mark.parametrize(
    ("entry", "of_request", "age_s", "expected"),
    [
        pytest.param(None, "h", 0, Unused(), id="never seen"),
        pytest.param(RUNNING, "h", LEASE_S, STILL_RUNNING, id="running"),
        pytest.param(RUNNING, "h", LEASE_S + 0.1, GoesOn("i", 3), id="its edge is gone"),
        pytest.param(RUNNING, "g", 0, OTHER_REQUEST, id="running, and another body"),
        pytest.param(OPEN, "h", 0, GoesOn("i", 3), id="failed before"),
        pytest.param(OPEN, "g", 0, OTHER_REQUEST, id="failed before, and another body"),
        pytest.param(FINISHED, "h", 0, Replay(ANSWER, None), id="finished"),
        pytest.param(FINISHED, "g", 0, OTHER_REQUEST, id="finished, and another body"),
        pytest.param(
            msgspec.structs.replace(FINISHED, answer=None), "h", 0, NOT_REPLAYABLE, id="not kept"
        ),
    ],
)
def test_what_it_means(
    entry: IdempotencyEntry | None, of_request: str, age_s: float, expected: Meaning
) -> None:
    assert meaning(entry, of_request, age_s, LEASE_S) == expected


@pytest.mark.parametrize(
    ("problem", "status", "headers"),
    [
        pytest.param(STILL_RUNNING, 409, {"retry-after": "1"}, id="running"),
        pytest.param(NOT_REPLAYABLE, 409, {"x-should-retry": "false"}, id="not replayable"),
        pytest.param(OTHER_REQUEST, 422, {"x-should-retry": "false"}, id="another request"),
    ],
)
def test_how_it_is_refused(problem: Problem, status: int, headers: dict[str, str]) -> None:
    assert (problem.status, problem.type, problem.headers) == (status, "idempotency_error", headers)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param([(b"accept", b"*/*")], None, id="none"),
        pytest.param([(b"idempotency-key", b"order 7")], "order 7", id="a key"),
        pytest.param([(b"idempotency-key", b"k" * 255)], "k" * 255, id="a long key"),
        pytest.param([(b"idempotency-key", b"k" * 256)], INVALID_KEY, id="too long"),
        pytest.param([(b"idempotency-key", b"")], INVALID_KEY, id="empty"),
        pytest.param([(b"idempotency-key", b" ")], INVALID_KEY, id="blank"),
        pytest.param([(b"idempotency-key", b"\xe9")], INVALID_KEY, id="not ASCII"),
        pytest.param([(b"idempotency-key", b"a\tb")], INVALID_KEY, id="not printable"),
        pytest.param([(b"idempotency-key", b"a")] * 2, INVALID_KEY, id="two"),
    ],
)
def test_the_header(headers: list[tuple[bytes, bytes]], expected: str | Problem | None) -> None:
    assert idempotency_key(headers) == expected


def test_a_key_belongs_to_its_team_and_is_one_token() -> None:
    names = {entry_key(team, key) for team in ("a", "b") for key in ("k", "*.>", "a b")}
    assert len(names) == 6
    assert all(name.isalnum() for name in names)


def test_a_request_is_its_endpoint_and_every_byte() -> None:
    same = request_hash(CHAT_COMPLETIONS, b'{"a":1}')
    assert same == request_hash(CHAT_COMPLETIONS, b'{"a":1}')
    assert same != request_hash(CHAT_COMPLETIONS, b'{"a": 1}')
    assert same != request_hash(EMBEDDINGS, b'{"a":1}')
