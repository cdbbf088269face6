"""One connection to NATS that says at once when it is dead, and never buffers for later.

A buffered request would be delivered after its caller gave up; so nothing is buffered while
disconnected, and a dead peer is noticed after two missed pings.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import nats.errors
from nats.aio.client import Client

from kit import log
from kit.bus.direct import DirectClient
from kit.errors import NotReadyError
from kit.health import CheckResult
from kit.settings import NatsSettings

_PING_INTERVAL_S = 5
_CONNECT_TIMEOUT_S = 2
_logger = log.get(__name__)


@contextlib.asynccontextmanager
async def connection(
    settings: NatsSettings, name: str, on_reconnected: Callable[[], None] | None = None
) -> AsyncIterator[Client]:
    """Hold a connection that comes back by itself; close it at the end without draining.

    `on_reconnected` is called when it came back: plain subscriptions have missed whatever was
    published meanwhile.

    Raises:
        NotReadyError: no server answers, or it refuses our user.

    """
    client, events = DirectClient(), _Events(on_reconnected)
    try:
        await _connect(client, settings, name, events)
        yield client
    finally:
        events.leaving = True
        await _close(client)


class _Events:
    """What the library tells of a connection."""

    def __init__(self, on_reconnected: Callable[[], None] | None) -> None:
        self._on_reconnected = on_reconnected
        self.leaving = False
        self.first_error: Exception | None = None

    async def failed(self, error: Exception) -> None:
        self.first_error = self.first_error or error
        _logger.warning("nats error", error=type(error).__name__, detail=str(error))

    async def disconnected(self) -> None:
        if not self.leaving:
            _logger.warning("nats disconnected")

    async def reconnected(self) -> None:
        _logger.info("nats reconnected")
        if self._on_reconnected is not None:
            self._on_reconnected()


async def _connect(client: Client, settings: NatsSettings, name: str, events: _Events) -> None:
    servers = settings.nats_url.split(",")
    try:
        # A client that may reconnect tries for ever already at first; whoever opens the service
        # tries again, and meanwhile can say why it isn't ready.
        async with asyncio.timeout(_CONNECT_TIMEOUT_S * len(servers)):
            await client.connect(
                servers=servers,
                name=name,
                user=settings.nats_user or None,
                password=settings.nats_password.get_secret_value() or None,
                # Answers go to an inbox that no other user may read.
                inbox_prefix=f"_INBOX.{settings.nats_user}" if settings.nats_user else "_INBOX",
                pending_size=0,
                ping_interval=_PING_INTERVAL_S,
                max_outstanding_pings=2,
                connect_timeout=_CONNECT_TIMEOUT_S,
                reconnect_time_wait=1,
                max_reconnect_attempts=-1,
                error_cb=events.failed,
                disconnected_cb=events.disconnected,
                reconnected_cb=events.reconnected,
            )
    except (nats.errors.Error, OSError, TimeoutError) as error:
        raise NotReadyError(f"nats: {_words(events.first_error or error)}") from error


async def _close(client: Client) -> None:
    try:
        await client.close()
    except (OSError, RuntimeError) as error:
        # For the library's last words on a connection that the server has reset; the second is
        # uvloop's.
        _logger.warning("nats connection closed roughly", detail=str(error))


def _words(error: Exception) -> str:
    """Return what the server said, which the library raises as it stands, or the error's name."""
    said = str(error).removeprefix("nats: ").strip("'")
    return said if type(error) is nats.errors.Error and said else type(error).__name__


async def flushed(client: Client) -> None:
    """Return when the server has handled all that was sent so far.

    Raises:
        nats.errors.Error, TimeoutError: nobody can tell.

    """
    # The library writes a flush's ping past what still waits to be written; by the answer to the
    # first ping that has left, and the second follows it.
    await client.flush()
    await client.flush()


async def check(client: Client) -> CheckResult:
    """Return None while connected, else why not."""
    return None if client.is_connected else "disconnected"
