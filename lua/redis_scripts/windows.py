"""Sliding windows as the scripts are told them, and what they answer."""

from collections.abc import Iterable, Sequence

import msgspec

from contracts.windows import WindowUse
from redis_scripts.errors import OutOfRangeError
from redis_scripts.keys import Place
from redis_scripts.numbers import exact

Argument = str | int
RawUse = tuple[int, int, int]


class WindowTerms(msgspec.Struct, frozen=True):
    """One window: refuses while `most` requests of the last `length_us` are in its log.

    `name` is the request's, in the log of all it is judged by; it must be in none yet.
    """

    place: Place
    most: int
    length_us: int
    name: str
    shadow: bool = False

    def arguments(self) -> tuple[int, int, int]:
        """Return 1 if in shadow mode, most requests, length in µs.

        Raises:
            OutOfRangeError: it would never admit, or its numbers are beyond what scripts can hold.

        """
        # Of a window that never admits no request could leave: there would be no time to tell.
        if self.most < 1 or self.length_us < 1:
            raise OutOfRangeError
        return int(self.shadow), exact(self.most), exact(self.length_us)


class WindowsReply(msgspec.Struct, frozen=True):
    """Whether a request may come, and each window's use after the decision; refused wrote nothing.

    `now_us` is the server's clock.
    """

    admitted: bool
    now_us: int
    uses: tuple[WindowUse, ...]


class WindowsState(msgspec.Struct, frozen=True):
    """Each window's use at a moment of the server's clock.

    Of one that admits, too, it tells when it will be empty.
    """

    now_us: int
    uses: tuple[WindowUse, ...]


def judged_alone(windows: Sequence[WindowTerms]) -> Iterable[Argument]:
    """Return the arguments of the script that judges windows alone."""
    yield windows[0].name
    for window in windows:
        yield from window.arguments()


def read_use(raw: RawUse) -> WindowUse:
    """Read one window's use out of a reply."""
    used, admits_at_us, empty_at_us = raw
    return WindowUse(used=used, admits_at_us=admits_at_us, empty_at_us=empty_at_us)
