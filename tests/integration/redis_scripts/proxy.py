"""A wire between a client and a server whose replies can be held back or lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Proxy:
    """Passes requests on at once; replies only while `replies` is set."""

    def __init__(self, host: str, port: int) -> None:
        self._server_address = (host, port)
        self._wires: set[asyncio.StreamWriter] = set()
        self.replies = asyncio.Event()
        self.replies.set()
        self.held = asyncio.Event()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(*self._server_address)
        self._wires |= {writer, server_writer}
        try:
            await asyncio.gather(
                self._pass(reader, server_writer, hold=False),
                self._pass(server_reader, writer, hold=True),
            )
        except ConnectionError:
            pass  # One end has left, which is what these tests are about.
        finally:
            writer.close()
            server_writer.close()

    def cut(self) -> None:
        """Close every connection, with whatever reply was held back on it."""
        for wire in self._wires:
            wire.transport.abort()
        self._wires.clear()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, hold: bool
    ) -> None:
        while data := await reader.read(65_536):
            if hold and not self.replies.is_set():
                self.held.set()
                await self.replies.wait()
            writer.write(data)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def proxy_to(host: str, port: int) -> AsyncIterator[Proxy]:
    """Listen on a free port and pass everything on to the server."""
    proxy = Proxy(host, port)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = listener.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listener.close()
        proxy.replies.set()
        proxy.cut()
