"""What this process has in hand: bounded, and finished before it leaves.

Each request is a task of its own. It is not cancelled when its client leaves or when the server
gives up waiting: what a provider was asked for must be recorded.
"""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Protocol

from prometheus_client import Gauge

from kit import background, log

_CROWD = 2
"""How many times more may be at work out of a calm."""
_CALM_AFTER_S = 5.0

_logger = log.get(__name__)
_IN_FLIGHT = Gauge("quotagate_in_flight", "Requests this process has in hand, drains included.")
_DRAINS = Gauge("quotagate_drains", "Providers that are read although their client has left.")


class Hurried(Protocol):
    """Something that waits for others and can be told to wait no longer."""

    def hurry(self, left_s: float) -> None:
        """Wait `left_s` more at most."""


class InFlight:
    """The requests in hand."""

    def __init__(self, most: int, most_at_work: int) -> None:
        """Take `most` requests at once, of which `most_at_work` don't wait for a provider.

        What waits for a provider costs memory only. What doesn't waits for this process and for
        admission: many of those are many seconds, and all of them wait for the last. Out of a calm
        twice as many may be at work, so that a crowd that comes at once is served; it is calm
        again when nobody was refused for some seconds.
        """
        self._most = most
        self._most_at_work = most_at_work
        self._calm_from_s = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: set[Hurried] = set()
        self._stopping = False
        _IN_FLIGHT.set_function(lambda: len(self._tasks))

    @property
    def full(self) -> bool:
        """Whether one more would be too many."""
        is_calm = time.monotonic() >= self._calm_from_s
        most_at_work = self._most_at_work * (_CROWD if is_calm else 1)
        return len(self._tasks) >= self._most or self._at_work >= most_at_work or self._stopping

    @property
    def stopping(self) -> bool:
        """Whether nothing is waited for any more."""
        return self._stopping

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do a request's work, to its end also where the caller is cancelled."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.shield(task)

    @property
    def _at_work(self) -> int:
        return len(self._tasks) - len(self._waiting)

    def refused(self) -> None:
        """Know that one was refused because this was full."""
        self._calm_from_s = time.monotonic() + _CALM_AFTER_S

    def waits(self, waiting: Hurried) -> None:
        """Remember who waits for a provider, to hurry it when the process is told to stop."""
        self._waiting.add(waiting)
        if self._stopping:
            waiting.hurry(0)

    def waited(self, waiting: Hurried) -> None:
        """Forget who has stopped waiting."""
        self._waiting.discard(waiting)

    def drains(self, change: int) -> None:
        """Count a drain that begins (1) or ends (-1)."""
        _DRAINS.inc(change)

    async def finish(self, grace_s: float) -> None:
        """Wait for what is in hand, for `grace_s` at most."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_s)

    async def stop(self, grace_s: float) -> None:
        """Wait for no provider any more, let every record find its place, and cancel the rest."""
        self._stopping = True
        for waiting in list(self._waiting):
            waiting.hurry(0)
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace_s)
            if late:
                _logger.error("requests cancelled", count=len(late))
                await background.cancel(late)
