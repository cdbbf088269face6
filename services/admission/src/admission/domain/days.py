"""Calendar days of a time zone: which two touch at the midnight nearest to a moment."""

from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from admission.errors import UnknownTimeZoneError

_MINUTE_US = 60_000_000
_US_PER_S = 1_000_000


class Days(msgspec.Struct, frozen=True):
    """Two days next to each other, unix microseconds: the boundary ends one and begins the other.

    Where midnight doesn't exist, because clocks were set forward at it, the day begins when the
    clocks show their first instant of it.
    """

    start_us: int
    boundary_us: int
    end_us: int

    def day_of(self, now_us: int) -> tuple[int, int]:
        """Return start and end of that one of the two which a moment is in."""
        if now_us < self.boundary_us:
            return self.start_us, self.boundary_us
        return self.boundary_us, self.end_us


def days_around(now_us: int, time_zone: str) -> Days:
    """Return the two days that touch nearest to `now_us` (unix µs).

    A clock that is apart from this one by less than half a day finds itself in one of the two.

    Raises:
        UnknownTimeZoneError: this machine's time zone database doesn't have it.

    """
    return _days_around(now_us // _MINUTE_US, time_zone)


# A day begins at a whole minute, so all moments of a minute have the same two days.
@lru_cache(maxsize=1024)
def _days_around(unix_minute: int, time_zone: str) -> Days:
    try:
        zone = ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnknownTimeZoneError(time_zone) from error
    now_us = unix_minute * _MINUTE_US
    today = datetime.fromtimestamp(unix_minute * 60, UTC).astimezone(zone).date()
    start_us, end_us = _begins_us(today, zone), _begins_us(today + timedelta(days=1), zone)
    if now_us - start_us < end_us - now_us:
        return Days(_begins_us(today - timedelta(days=1), zone), start_us, end_us)
    return Days(start_us, end_us, _begins_us(today + timedelta(days=2), zone))


def _begins_us(day: date, zone: ZoneInfo) -> int:
    return int(datetime.combine(day, time(), zone).timestamp()) * _US_PER_S
