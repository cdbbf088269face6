"""The head of an answer leaves together with what follows at once."""

import asyncio
from typing import cast


class _Joining:
    """What uvicorn writes an answer to: its head leaves together with what follows at once.

    The loop sends each write by itself, and each wakes the client up.
    """

    __slots__ = ("_departure", "_head", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head: bytes | None = None
        self._departure: asyncio.Handle | None = None

    def write(self, data: bytes) -> None:
        """Keep the first piece for the rest of this turn of the loop; send what follows."""
        if self._departure is None:
            self._head = data
            self._departure = self._loop.call_soon(self._depart)
        elif self._head is None:
            self._transport.write(data)
        else:
            head, self._head = self._head, None
            self._departure.cancel()
            self._transport.write(head + data)

    def close(self) -> None:
        """Close when all is sent."""
        self._depart()
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether the client has left, or has been cut."""
        return self._transport.is_closing()

    def _depart(self) -> None:
        if self._head is not None:
            head, self._head = self._head, None
            self._transport.write(head)


def joining(transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> asyncio.Transport:
    """Return what one answer is to be written to, as far as uvicorn needs a transport for it."""
    return cast("asyncio.Transport", _Joining(transport, loop))
