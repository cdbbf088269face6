"""Up to where the stream may forget."""

from datetime import UTC, datetime, timedelta

import pytest

from settlement.domain.trimming import StoredRecord, first_to_keep

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
