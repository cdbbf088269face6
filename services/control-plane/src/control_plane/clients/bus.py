"""The connection to NATS: made as soon as a server can be reached, and kept.

The admin API doesn't wait for it: without NATS changes are committed and their events stay in the
outbox.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from nats.aio.client import Client

from contracts.control import CONTROL_EVENTS
from kit import log
from kit.bus.connection import connection
from kit.bus.errors import DisconnectedError
from kit.bus.streams import check_streams, check_synced
from kit.errors import NotReadyError, UnsafeServerError
from kit.health import CheckResult
from kit.settings import NatsSettings

_RETRY_S = 1.0
_logger = log.get(__name__)


class Connections(Protocol):
    """Where a client of the bus finds its connection."""

    def client(self) -> Client:
        """Return the connection. Raises DisconnectedError where there is none."""


class Bus:
    """Holds the connection while :meth:`run` runs."""

    def __init__(self, settings: NatsSettings) -> None:
        self._settings = settings
        self._client: Client | None = None
        self._problem: str | None = "not connected yet"

    def client(self) -> Client:
        """Return the connection.

        Raises:
            DisconnectedError: there is none at the moment.

        """
        if self._client is None or not self._client.is_connected:
            raise DisconnectedError
        return self._client

    async def check(self) -> CheckResult:
        """Return None once NATS was reached and its stream found safe, else why not.

        It says nothing of a later loss of the connection: changes are safe in the outbox, and a
        service that can serve them should not be taken out of use.
        """
        return self._problem

    async def run(self, stop: asyncio.Event, on_connected: Callable[[], None]) -> None:
        """Connect, and stay connected until told to stop.

        `on_connected` is called when the connection is there, for the first time and again.
        """
        while not stop.is_set():
            try:
                async with connection(self._settings, "control-plane", on_connected) as client:
                    await self._see_that_it_is_safe(client)
                    self._client, self._problem = client, None
                    _logger.info("on the bus")
                    on_connected()
                    await self._stay(client, stop)
            except NotReadyError as error:
                if self._problem != str(error):
                    _logger.warning("not on the bus", reason=str(error))
                self._problem = str(error)
            finally:
                self._client = None
            await _pause(stop)

    async def _see_that_it_is_safe(self, client: Client) -> None:
        await check_streams(client, (CONTROL_EVENTS,))
        await check_synced(self._settings)

    async def _stay(self, client: Client, stop: asyncio.Event) -> None:
        """Return when the connection is closed, or we are told to stop.

        Raises:
            UnsafeServerError: what was acknowledged might be lost from now on.

        """
        looked_s = time.monotonic()
        while not (client.is_closed or stop.is_set()):
            await _pause(stop)
            if time.monotonic() - looked_s < self._settings.recheck_s:
                continue
            looked_s = time.monotonic()
            try:
                await self._see_that_it_is_safe(client)
            except UnsafeServerError:
                raise
            except NotReadyError:
                continue  # nobody can tell; it may come back as it was


async def _pause(stop: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(_RETRY_S):
            await stop.wait()
    except TimeoutError:
        pass  # the ordinary case: nobody stopped us
