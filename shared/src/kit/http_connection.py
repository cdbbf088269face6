"""Uvicorn's HTTP protocol with what it lacks: a bound on heads, and a hold on the connection.

Uvicorn waits for ever for the rest of a request's head, accepts one of any size, and gives an
application no way to learn that its client left, short of waiting for it, nor to cut a client that
has stopped reading. Pass :class:`BoundedProtocol` to :func:`kit.asgi.serve`.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from starlette.types import Scope

from kit.connection_limits import ConnectionLimits, Excess
from kit.http_joining import joining
from kit.http_leaving import LeavingProtocol

HEAD_TIMEOUT_S = 15.0
"""Seconds from the first sign of a request, or of its connection, to the end of its head."""
MAX_HEAD_BYTES = 65_536
"""Request line and headers together; what of the body arrived with them counts only once over."""

_EXTENSION = "quotagate.connection"
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain; charset=utf-8\r\n"
    b"content-length: 35\r\nconnection: close\r\n\r\nThe request's headers are too large"
)


@dataclass(frozen=True, slots=True)
class Connection:
    """The client's connection, as far as an application may touch it."""

    transport: asyncio.Transport
    excess: Excess | None = None
    """In which way it is one too many; to be told to its client, and no more."""

    @property
    def gone(self) -> bool:
        """Whether the client has left, or has been cut."""
        return self.transport.is_closing()

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be written."""
        return self.transport.get_write_buffer_size() == 0

    def cut(self) -> None:
        """Close at once, without waiting for a client that doesn't read."""
        self.transport.abort()


def connection_of(scope: Scope) -> Connection | None:
    """Return the connection of a request; None: the server doesn't run this protocol."""
    found: Connection | None = scope.get("extensions", {}).get(_EXTENSION)
    return found


class BoundedProtocol(LeavingProtocol):
    """One client connection whose requests' heads have a deadline and a largest size."""

    _in_head = True
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None
    _limits: ConnectionLimits | None = None
    excess: Excess | None = None
    """What is too much about this connection, where its address is counted."""
    _counted_as: str | None = None

    def connection_made(
        self,
        transport: asyncio.Transport,  # type: ignore[override] # narrowed as in uvicorn
    ) -> None:
        """Expect a first request."""
        super().connection_made(transport)
        self._start_timer()
        if self._limits is not None:
            self._count(self._limits)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer, and the connection."""
        self._stop_timer()
        if self._limits is not None and self._counted_as is not None:
            self._limits.closed(self._counted_as)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless a head has grown too large."""
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD_BYTES:
            self.transport.write(_TOO_LARGE)
            self.transport.close()
        elif self._head_timer is None:
            self._start_timer()

    def on_message_begin(self) -> None:
        """Begin a request, with the connection in its scope."""
        self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()
        extensions: dict[str, Any] = {_EXTENSION: Connection(self.transport, self.excess)}
        self.scope["extensions"] = extensions

    def on_headers_complete(self) -> None:
        """Let the application take over."""
        self.head_is_over()
        super().on_headers_complete()
        if self.cycle is not None:
            self.cycle.transport = joining(self.transport, self.loop)

    def head_is_over(self) -> None:
        """Wait for the head no longer; until this is said, what comes counts as part of it."""
        self._in_head = False
        self._stop_timer()

    def _count(self, limits: ConnectionLimits) -> None:
        address = limits.address_of(self.client[0]) if self.client else None
        if address is None:
            return
        self._counted_as = address
        self.excess = limits.opened(address)
        if limits.must_cut(address):
            self.transport.abort()

    def _start_timer(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def limited_protocol(
    limits: ConnectionLimits, base: type[BoundedProtocol] = BoundedProtocol
) -> type[BoundedProtocol]:
    """Return the protocol whose connections are counted against limits, by their addresses."""
    return type("LimitedProtocol", (base,), {"_limits": limits})
