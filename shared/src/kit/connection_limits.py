"""A bound on what one address can hold and open of connections, judged as they come.

A connection that is too many is still answered once, so that its client learns why: the application
sees it as :attr:`kit.http_connection.Connection.excess`. Beyond twice the bound it is cut at once.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from prometheus_client import Counter as CounterMetric

from kit.paces import Paces

_CUT = CounterMetric(
    "quotagate_connections_cut_total",
    "Connections cut without an answer: their address had twice as many open as it may.",
)
_NS_PER_US = 1_000
_WAIT_US = 1_000_000


class Bound(StrEnum):
    """Which bound a connection is beyond."""

    OPEN = "open"
    RATE = "rate"


@dataclass(frozen=True, slots=True)
class Excess:
    """A connection that is too many, and how long its client should wait."""

    bound: Bound
    limit: int
    used: int
    wait_us: int


class ConnectionLimits:
    """Connections by the address that `address_of` makes of a peer; None: it isn't counted."""

    def __init__(
        self, most_open: int, most_per_second: int, address_of: Callable[[str], str | None]
    ) -> None:
        """Allow an address so many; 0: any number."""
        self.address_of = address_of
        self._most_open = most_open
        self._paces = Paces(most_per_second, 1) if most_per_second else None
        self._open: Counter[str] = Counter()

    @property
    def open(self) -> int:
        """How many are counted."""
        return self._open.total()

    def opened(self, address: str) -> Excess | None:
        """Count a connection; return in which way it is too many."""
        self._open[address] += 1
        used = self._open[address]
        if self._most_open and used > self._most_open:
            return Excess(Bound.OPEN, self._most_open, used - 1, _WAIT_US)
        if self._paces is None:
            return None
        now_us = time.monotonic_ns() // _NS_PER_US
        debt_us = self._paces.debt_us(address, now_us)
        wait_us = self._paces.wait_us(debt_us)
        if wait_us:
            used = self._paces.used(debt_us)
            return Excess(Bound.RATE, self._paces.most, used, wait_us)
        self._paces.count(address, now_us)
        return None

    def must_cut(self, address: str) -> bool:
        """Return whether so many are open that not even a refusal is due."""
        if not self._most_open or self._open[address] <= 2 * self._most_open:
            return False
        _CUT.inc()
        return True

    def closed(self, address: str) -> None:
        """Count one less."""
        self._open[address] -= 1
        if self._open[address] <= 0:
            del self._open[address]
