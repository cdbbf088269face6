"""Up to where the stream may forget."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from settlement.domain.trimming import (
    Extent,
    StoredRecord,
    first_to_keep,
    is_nearly_full,
    settled_run,
    surplus,
)

CUTOFF = datetime(2026, 1, 2, tzinfo=UTC)
OLD = CUTOFF - timedelta(microseconds=1)
PENDING = None


@pytest.mark.parametrize(
    ("records", "keep"),
    [
        pytest.param([], None, id="nothing is stored"),
        pytest.param([(7, OLD), (8, OLD)], 9, id="all of it is old"),
        pytest.param([(7, OLD), (8, CUTOFF), (9, OLD)], 8, id="one is in the window"),
        pytest.param([(7, PENDING), (8, OLD)], None, id="the first waits for its charge"),
        pytest.param([(7, OLD), (8, OLD), (9, PENDING), (10, OLD)], 9, id="a later one waits"),
        pytest.param([(7, OLD), (12, OLD), (13, PENDING)], 13, id="a gap goes with its successor"),
        pytest.param([(7, OLD), (12, PENDING)], 8, id="a gap before one that waits stays"),
    ],
)
def test_first_to_keep(records: list[tuple[int, datetime | None]], keep: int | None) -> None:
    assert first_to_keep([StoredRecord(*record) for record in records], CUTOFF) == keep


def _extent(held_bytes: int, sequences: int = 100, max_bytes: int | None = 1_000) -> Extent:
    return Extent(7, 6 + sequences, held_bytes, max_bytes)


@pytest.mark.parametrize(
    ("extent", "nearly_full"),
    [
        pytest.param(_extent(800), False, id="just at the share"),
        pytest.param(_extent(801), True, id="beyond the share"),
        pytest.param(_extent(10**12, max_bytes=None), False, id="without a limit"),
        pytest.param(Extent(7, 6, 0, 1_000), False, id="empty"),
    ],
)
def test_nearly_full(extent: Extent, nearly_full: bool) -> None:
    assert is_nearly_full(extent, 0.8) == nearly_full


@pytest.mark.parametrize(
    ("extent", "sequences"),
    [
        pytest.param(_extent(1_000), 30, id="down to seven eighths of the share"),
        pytest.param(_extent(801), 13, id="rounded up"),
        pytest.param(_extent(1_000, sequences=1), 1, id="a single message"),
        pytest.param(_extent(700), 0, id="well below the share"),
        pytest.param(_extent(10**12, max_bytes=None), 0, id="without a limit"),
        pytest.param(Extent(7, 6, 0, 1_000), 0, id="empty"),
    ],
)
def test_surplus(extent: Extent, sequences: int) -> None:
    assert surplus(extent, 0.8) == sequences


@given(st.lists(st.integers(100, 100_000), min_size=1, max_size=200))
def test_removing_the_surplus_again_and_again_makes_room(sizes: list[int]) -> None:
    max_bytes, rounds = sum(sizes), 0
    while count := surplus(Extent(1, len(sizes), sum(sizes), max_bytes), 0.8):
        sizes = sizes[count:]
        rounds += 1
    assert sum(sizes) <= max_bytes * 0.7
    assert rounds <= 50


SEQUENCES = range(7, 12)


@pytest.mark.parametrize(
    ("records", "end", "unknown"),
    [
        pytest.param([], 12, [7, 8, 9, 10, 11], id="nothing is stored"),
        pytest.param([(n, OLD) for n in SEQUENCES], 12, [], id="all is done"),
        pytest.param([(7, OLD), (8, CUTOFF), (9, PENDING), (10, OLD)], 9, [], id="one waits"),
        pytest.param([(7, PENDING)], 7, [], id="the first waits"),
        pytest.param([(8, OLD), (10, PENDING)], 10, [7, 9], id="unknown ones before it"),
        pytest.param([(7, OLD), (12, PENDING), (13, OLD)], 12, [8, 9, 10, 11], id="beyond the end"),
    ],
)
def test_settled_run(
    records: list[tuple[int, datetime | None]], end: int, unknown: list[int]
) -> None:
    run = settled_run([StoredRecord(*record) for record in records], SEQUENCES)
    assert (run.end, run.unknown) == (end, unknown)


def test_the_run_tells_what_was_done_last_in_it() -> None:
    records = [StoredRecord(7, CUTOFF), StoredRecord(8, OLD), StoredRecord(9, PENDING)]
    assert settled_run(records, SEQUENCES).newest_done_at == CUTOFF
    assert settled_run([], SEQUENCES).newest_done_at is None
