"""How the loops wait: until it is time, until somebody wakes them, until told to stop."""

import asyncio
from collections.abc import Awaitable, Callable

from kit import log
from kit.background import Loop
from kit.errors import KitError
from settlement.errors import SettlementError
from settlement.handlers.metrics import FAILURES

_logger = log.get(__name__)


async def pause(seconds: float, *wakers: asyncio.Event) -> None:
    """Return after `seconds`, or as soon as one of the events is set."""
    waits = [asyncio.ensure_future(waker.wait()) for waker in wakers]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def every(interval_s: float, tick: Callable[[], Awaitable[None]], name: str) -> Loop:
    """Return a loop that calls `tick` every `interval_s`, also after one that failed."""

    async def loop(stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await tick()
            except (SettlementError, KitError) as error:
                FAILURES.labels(name).inc()
                _logger.warning("round failed", loop=name, detail=str(error))
            except Exception:  # the outermost loop: the next round may succeed
                FAILURES.labels(name).inc()
                _logger.exception("round failed", loop=name)
            await pause(interval_s, stop)

    return loop
