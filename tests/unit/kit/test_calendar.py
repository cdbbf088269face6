"""Calendar days and months: which two touch, across zones and changes of the clock."""

from collections.abc import Callable
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.calendar import (
    BeyondCalendarError,
    Periods,
    UnknownTimeZoneError,
    days_around,
    months_around,
)

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
ZONES = ["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "Pacific/Kiritimati"]


def us(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("now", "zone", "boundary"),
    [
        pytest.param("2026-11-30T23:59:59Z", "UTC", "2026-12-01T00:00:00Z", id="just before"),
        pytest.param("2026-12-01T00:00:00Z", "UTC", "2026-12-01T00:00:00Z", id="just then"),
        pytest.param("2026-12-01T11:59:00Z", "UTC", "2026-12-01T00:00:00Z", id="in the morning"),
        pytest.param("2026-12-01T12:00:00Z", "UTC", "2026-12-02T00:00:00Z", id="at noon"),
        pytest.param(
            "2026-12-01T00:00:00Z", "Asia/Kathmandu", "2026-11-30T18:15:00Z", id="quarter hours"
        ),
    ],
)
def test_the_nearest_midnight(now: str, zone: str, boundary: str) -> None:
    assert days_around(us(now), zone).boundary_us == us(boundary)


@pytest.mark.parametrize(
    ("noon", "zone", "hours"),
    [
        pytest.param("2026-03-29T12:00:00Z", "Europe/Berlin", 23, id="clocks set forward"),
        pytest.param("2026-10-25T12:00:00Z", "Europe/Berlin", 25, id="clocks set back"),
        pytest.param("2026-06-01T12:00:00Z", "Europe/Berlin", 24, id="an ordinary day"),
        # Clocks go from 24:00 to 01:00: the day begins at what they show first.
        pytest.param("2026-09-06T16:00:00Z", "America/Santiago", 23, id="no midnight at all"),
    ],
)
def test_a_day_is_as_long_as_its_zone_says(noon: str, zone: str, hours: int) -> None:
    start_us, end_us = days_around(us(noon), zone).period_of(us(noon))
    assert end_us - start_us == hours * HOUR_US


@settings(deadline=None)
@given(
    st.integers(us("2000-01-01T00:00:00Z"), us("2035-01-01T00:00:00Z")),
    st.sampled_from(ZONES),
    st.integers(-11 * HOUR_US, 11 * HOUR_US),
)
def test_a_clock_apart_by_less_than_half_a_day_finds_the_same_day(
    now_us: int, zone: str, apart_us: int
) -> None:
    ours, theirs = days_around(now_us, zone), days_around(now_us + apart_us, zone)
    start_us, end_us = theirs.period_of(now_us)
    assert start_us <= now_us < end_us
    assert ours.period_of(now_us) == (start_us, end_us)
    assert 20 * HOUR_US < end_us - start_us < 28 * HOUR_US


@pytest.mark.parametrize(
    ("now", "zone", "start", "boundary", "end"),
    [
        pytest.param(
            "2026-12-01T00:00:00Z", "UTC",
            "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z",
            id="over the year's end",
        ),
        pytest.param(
            "2028-02-20T00:00:00Z", "UTC",
            "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z", "2028-04-01T00:00:00Z",
            id="a leap year's February",
        ),
        pytest.param(
            "2026-10-30T22:59:00Z", "Europe/Berlin",
            "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z", "2026-11-30T23:00:00Z",
            id="a month in which clocks change",
        ),
        pytest.param(
            "2026-01-31T12:00:00Z", "Pacific/Kiritimati",
            "2025-12-31T10:00:00Z", "2026-01-31T10:00:00Z", "2026-02-28T10:00:00Z",
            id="where it is tomorrow already",
        ),
    ],
)  # fmt: skip
def test_the_months_that_touch(now: str, zone: str, start: str, boundary: str, end: str) -> None:
    months = months_around(us(now), zone)
    assert (months.start_us, months.boundary_us, months.end_us) == (
        us(start),
        us(boundary),
        us(end),
    )


@settings(deadline=None)
@given(
    st.integers(us("2000-01-01T00:00:00Z"), us("2035-01-01T00:00:00Z")),
    st.sampled_from(ZONES),
    st.integers(-11 * HOUR_US, 11 * HOUR_US),
)
def test_a_clock_apart_by_less_than_half_a_day_finds_the_same_month(
    now_us: int, zone: str, apart_us: int
) -> None:
    ours, theirs = months_around(now_us, zone), months_around(now_us + apart_us, zone)
    start_us, end_us = theirs.period_of(now_us)
    assert start_us <= now_us < end_us
    assert ours.period_of(now_us) == (start_us, end_us)
    assert 27 * DAY_US < end_us - start_us < 32 * DAY_US


@pytest.mark.parametrize("zone", ["Mars/Base", "", "../UTC", "Europe"])
def test_an_unknown_zone_is_an_error(zone: str) -> None:
    with pytest.raises(UnknownTimeZoneError):
        days_around(DAY_US, zone)


@pytest.mark.parametrize("around", [days_around, months_around])
@pytest.mark.parametrize(
    "moment", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"], ids=["the last", "the first"]
)
def test_a_moment_that_no_calendar_goes_on_from_is_an_error(
    around: Callable[[int, str], Periods], moment: str
) -> None:
    for beyond_us in (0, 10**25):
        at_us = us(moment)
        with pytest.raises(BeyondCalendarError):
            around(at_us + beyond_us if at_us > 0 else at_us - beyond_us, "Pacific/Kiritimati")
