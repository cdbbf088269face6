"""Whether the clocks agree: each store's compared with this machine's."""

from collections.abc import Sequence
from dataclasses import dataclass

from kit.clock import SystemClock
from kit.flaws import Flaw

_LIMIT_US = 1_000_000
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class Reading:
    """How far a store's clock is ahead of this machine's, give or take the error."""

    store: str
    ahead_us: int
    error_us: int


class Stopwatch:
    """Reads this machine's clock before and after a store's."""

    def __init__(self) -> None:
        self._before_us = _CLOCK.now_us()

    def reading(self, store: str, theirs_us: int) -> Reading:
        """Return the reading; to be called as soon as the store's answer is here."""
        after_us = _CLOCK.now_us()
        middle_us = (self._before_us + after_us) // 2
        return Reading(store, theirs_us - middle_us, (after_us - self._before_us + 1) // 2)


def clock_flaws(readings: Sequence[Reading]) -> list[Flaw]:
    """Return a flaw if two clocks, this machine's among them, differ by more than a second."""
    known = [*readings, Reading("this machine", 0, 0)]
    latest = max(known, key=lambda reading: reading.ahead_us - reading.error_us)
    earliest = min(known, key=lambda reading: reading.ahead_us + reading.error_us)
    apart_us = latest.ahead_us - latest.error_us - earliest.ahead_us - earliest.error_us
    if apart_us <= _LIMIT_US:
        return []
    return [
        Flaw(
            what=f"clocks: {latest.store} is {apart_us / 1_000_000:.1f} s or more ahead of"
            f" {earliest.store}",
            why="Deadlines, the start of a price, the replay window and the order of what happened"
            " are judged by different clocks.",
            mend="Have all machines follow the same time servers (chrony, systemd-timesyncd).",
            dangerous=False,
        )
    ]
