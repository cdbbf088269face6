"""Tests that count by the day stay clear of midnight: what they begin on a day must end on it."""

import asyncio
from collections.abc import Iterable

from kit.calendar import days_around
from kit.clock import SystemClock

# Every zone in which a test's tier counts.
ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu")
# Far longer than any such test takes, and short enough to be waited for within a test's time.
ROOM_S = 50.0

_US_PER_S = 1_000_000


def wait_s(now_us: int, zones: Iterable[str] = ZONES) -> float:
    """Return how long to wait until no midnight is near ahead: mostly 0; `now_us` is unix µs."""
    ahead_us = [days_around(now_us, zone).boundary_us - now_us for zone in zones]
    near_us = [each for each in ahead_us if 0 < each < ROOM_S * _US_PER_S]
    return (max(near_us) / _US_PER_S + 1.0) if near_us else 0.0


async def far_from_midnight() -> None:
    """Return when there is room before the next midnight."""
    await asyncio.sleep(wait_s(SystemClock().now_us()))
