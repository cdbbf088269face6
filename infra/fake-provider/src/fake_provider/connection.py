"""One request on its connection: read, wait, write, and what no ASGI server lets an app do: drop.

Uvicorn hands an application no way to close a connection before or in the middle of an answer, so
the protocol puts the transport into the scope.
"""

import asyncio
import socket
import struct
from collections.abc import Sequence
from typing import Any

from starlette.types import Receive, Scope, Send

from fake_provider.errors import ClientGoneError
from kit.http_leaving import LeavingProtocol

_TRANSPORT = "fake_provider.transport"
_LARGEST_WRITE_BYTES = 65_536
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class TransportProtocol(LeavingProtocol):
    """The services' protocol, with its transport in the scope's extensions."""

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        extensions: dict[str, Any] = {_TRANSPORT: self.transport}
        self.scope["extensions"] = extensions


class Connection:
    """One request and the way back to whoever sent it.

    Every method that waits or writes raises ClientGoneError when the caller has left.
    """

    __slots__ = ("_receive", "_send", "_transport", "scope")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self._receive = receive
        self._send = send
        self._transport: asyncio.Transport = scope["extensions"][_TRANSPORT]

    async def body(self) -> bytes:
        """Read the whole body."""
        message = await self._receive()
        if not message.get("more_body") and message["type"] == "http.request":
            whole: bytes = message["body"]
            return whole
        parts = []
        while message["type"] == "http.request":
            parts.append(message["body"])
            if not message["more_body"]:
                return b"".join(parts)
            message = await self._receive()
        raise ClientGoneError

    async def start(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Send status and headers."""
        self._check()
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, data: bytes) -> None:
        """Send a part of the body, large ones in several pieces with room between them."""
        self._check()
        for at in range(0, len(data), _LARGEST_WRITE_BYTES):
            piece = data[at : at + _LARGEST_WRITE_BYTES]
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
            self._check()

    async def end(self, data: bytes = b"") -> None:
        """Send the last part of the body."""
        self._check()
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def pause_ms(self, pause_ms: float) -> None:
        """Wait; 0 doesn't wait at all."""
        if pause_ms:
            try:
                async with asyncio.timeout(pause_ms / 1000):
                    await self.hold()
            except TimeoutError:
                return

    async def hold(self) -> None:
        """Wait until the caller leaves; never returns otherwise."""
        await self.until_gone()
        raise ClientGoneError

    async def wait(self, event: asyncio.Event) -> None:
        """Wait for an event."""
        opened = asyncio.ensure_future(event.wait())
        gone = asyncio.ensure_future(self.until_gone())
        try:
            await asyncio.wait((opened, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            opened.cancel()
            gone.cancel()
        if not event.is_set():
            raise ClientGoneError

    async def drop(self, *, reset: bool) -> None:
        """Close the connection after what was written, or reset it at once."""
        if reset:
            plain: socket.socket = self._transport.get_extra_info("socket")
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
            self._transport.abort()
        else:
            self._transport.close()
        await self.until_gone()

    async def until_gone(self) -> None:
        """Wait until the server has noticed that the connection is closed."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def _check(self) -> None:
        if self._transport.is_closing():
            raise ClientGoneError
