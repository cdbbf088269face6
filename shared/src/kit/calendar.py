"""Calendar days and months of a time zone: which two touch nearest to a moment."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from kit.errors import KitError

_MINUTE_US = 60_000_000
_US_PER_S = 1_000_000
# Longer than any month, shorter than two.
_A_MONTH_ON = timedelta(days=32)


class CalendarError(KitError):
    """A moment is in no day and month that could be told."""


class UnknownTimeZoneError(CalendarError):
    """A time zone is not in this machine's database of them."""


class BeyondCalendarError(CalendarError):
    """A moment is before the year 1 or after the year 9999, or touches it."""


class Periods(msgspec.Struct, frozen=True):
    """Two periods next to each other, unix microseconds: the boundary ends one, begins the other.

    Where midnight doesn't exist, because clocks were set forward at it, a day begins when the
    clocks show their first instant of it.
    """

    start_us: int
    boundary_us: int
    end_us: int

    def period_of(self, now_us: int) -> tuple[int, int]:
        """Return start and end of that one of the two which a moment is in."""
        if now_us < self.boundary_us:
            return self.start_us, self.boundary_us
        return self.boundary_us, self.end_us


def days_around(now_us: int, time_zone: str) -> Periods:
    """Return the two days that touch nearest to `now_us` (unix µs).

    A clock that is apart from this one by less than half a day finds itself in one of the two.

    Raises:
        UnknownTimeZoneError: this machine's time zone database doesn't have it.
        BeyondCalendarError: no calendar has that moment.

    """
    return _days_around(now_us // _MINUTE_US, time_zone)


def months_around(now_us: int, time_zone: str) -> Periods:
    """Return the two months that touch nearest to `now_us` (unix µs), as `days_around` does.

    Raises:
        UnknownTimeZoneError: this machine's time zone database doesn't have it.
        BeyondCalendarError: no calendar has that moment.

    """
    return _months_around(now_us // _MINUTE_US, time_zone)


# Both begin at a whole minute, so all moments of a minute have the same two.
@lru_cache(maxsize=1024)
def _days_around(unix_minute: int, time_zone: str) -> Periods:
    return _around(unix_minute, time_zone, lambda day: day)


@lru_cache(maxsize=1024)
def _months_around(unix_minute: int, time_zone: str) -> Periods:
    return _around(unix_minute, time_zone, lambda day: day.replace(day=1), _A_MONTH_ON)


def _around(
    unix_minute: int,
    time_zone: str,
    first_of: Callable[[date], date],
    step: timedelta = timedelta(days=1),
) -> Periods:
    """Return the two periods; `first_of` is a period's first day, `step` leads into the next."""
    zone = _zone(time_zone)
    try:
        return _in_zone(unix_minute, zone, first_of, step)
    except (OverflowError, ValueError) as error:
        raise BeyondCalendarError from error


def _in_zone(
    unix_minute: int, zone: ZoneInfo, first_of: Callable[[date], date], step: timedelta
) -> Periods:
    now_us = unix_minute * _MINUTE_US
    first = first_of(datetime.fromtimestamp(unix_minute * 60, UTC).astimezone(zone).date())
    following = first_of(first + step)
    start_us, end_us = _begins_us(first, zone), _begins_us(following, zone)
    if now_us - start_us < end_us - now_us:
        before = first_of(first - timedelta(days=1))
        return Periods(_begins_us(before, zone), start_us, end_us)
    return Periods(start_us, end_us, _begins_us(first_of(following + step), zone))


def _zone(time_zone: str) -> ZoneInfo:
    try:
        return ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnknownTimeZoneError(time_zone) from error


def _begins_us(day: date, zone: ZoneInfo) -> int:
    return int(datetime.combine(day, time(), zone).timestamp()) * _US_PER_S
