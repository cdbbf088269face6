"""Rows as the values that cross the bus."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tier_cache.store.rows import unix_us


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        pytest.param(datetime(1970, 1, 1, tzinfo=UTC), 0, id="the epoch"),
        pytest.param(datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), -1, id="just before"),
        pytest.param(
            datetime(2286, 11, 20, 17, 46, 39, 999_999, UTC), 9_999_999_999_999_999, id="far, exact"
        ),
        pytest.param(
            datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0, id="another zone"
        ),
    ],
)
def test_unix_microseconds_are_exact(moment: datetime, expected: int) -> None:
    assert unix_us(moment) == expected
