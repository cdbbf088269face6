"""Loops that run beside a service for as long as it is open."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any

from kit import log

Loop = Callable[[asyncio.Event], Coroutine[Any, Any, None]]
"""Works until the event is set, and then ends by itself, soon."""

_ASK_AGAIN_S = 0.1

_logger = log.get(__name__)


def leave_if_crashed(task: "asyncio.Task[None]") -> None:
    """End the process when a task of it ended by a programmer's error: a callback of the task.

    Half a service that looks alive is worse than one that its supervisor starts again.
    """
    if task.cancelled() or task.exception() is None:
        return
    _logger.error("task crashed", task=task.get_name(), exc_info=task.exception())
    os.kill(os.getpid(), signal.SIGTERM)


@contextlib.asynccontextmanager
async def running(loop: Loop, name: str, grace_s: float) -> AsyncIterator[None]:
    """Keep a loop running; at the end tell it to stop, and cancel it after `grace_s`."""
    stop = asyncio.Event()
    task = asyncio.create_task(loop(stop), name=name)
    task.add_done_callback(leave_if_crashed)
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait([task], timeout=grace_s)
        await cancel([task])


async def cancel(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Cancel tasks and wait until they have ended; how they ended is for who asks them.

    One `task.cancel()` isn't enough before Python 3.12: `asyncio.wait_for`, which the clients of
    our servers use, swallows a cancellation that arrives together with its answer, and a loop
    would go on for ever.
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_ASK_AGAIN_S)
