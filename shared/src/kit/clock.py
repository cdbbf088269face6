"""Wall clock and monotonic clock behind one value, so that tests move time by hand."""

import time
from typing import Protocol


class Clock(Protocol):
    """Where a process reads the time. Integers only."""

    def now_us(self) -> int:
        """Return unix microseconds of this machine's wall clock."""

    def monotonic_us(self) -> int:
        """Return microseconds of a clock that never steps; only differences mean anything."""


class SystemClock:
    """The machine's clocks."""

    def now_us(self) -> int:
        """Return unix microseconds of this machine's wall clock."""
        return time.time_ns() // 1000

    def monotonic_us(self) -> int:
        """Return microseconds of a clock that never steps; only differences mean anything."""
        return time.monotonic_ns() // 1000
