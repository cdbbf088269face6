"""Hears of commits by any replica, through Postgres' notifications."""

import asyncio
from collections.abc import Callable

import asyncpg

from kit import log
from kit.postgres import CONNECTION_ERRORS
from tables.outbox import CHANNEL

_CONNECT_TIMEOUT_S = 5.0
_RETRY_S = 1.0
_logger = log.get(__name__)


class Notifications:
    """Listens on a connection of its own, and comes back when it is lost.

    Only a shortcut: what is missed meanwhile, the relay's clock finds.
    """

    def __init__(self, database_url: str, wake: Callable[[], None]) -> None:
        self._database_url = database_url
        self._wake = wake

    async def run(self, stop: asyncio.Event) -> None:
        """Listen until told to stop."""
        while not stop.is_set():
            try:
                await self._listen(stop)
            except CONNECTION_ERRORS as error:
                _logger.warning("not notified of commits", error=type(error).__name__)
            await _wait(stop, _RETRY_S)

    async def _listen(self, stop: asyncio.Event) -> None:
        lost = asyncio.Event()
        connection = await asyncpg.connect(self._database_url, timeout=_CONNECT_TIMEOUT_S)
        try:
            connection.add_termination_listener(lambda _connection: lost.set())
            await connection.add_listener(CHANNEL, lambda *_notification: self._wake())
            self._wake()  # for what was committed before we listened
            while not (lost.is_set() or stop.is_set()):
                await _wait(stop, _RETRY_S)
        finally:
            await connection.close(timeout=_CONNECT_TIMEOUT_S)


async def _wait(stop: asyncio.Event, timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await stop.wait()
    except TimeoutError:
        pass  # the ordinary case: nobody stopped us
