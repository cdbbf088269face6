"""A wire to a server that falls silent at a word: what the client says from then on is lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit


class Wire:
    """Passes everything on until the client says `word`; that and what follows goes nowhere."""

    def __init__(self, host: str, port: int, word: bytes) -> None:
        self._server_address = (host, port)
        self._word = word
        self._writers: set[asyncio.StreamWriter] = set()
        self.silent = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(*self._server_address)
        self._writers |= {writer, server_writer}
        try:
            await asyncio.gather(
                self._pass(reader, server_writer, listen=True),
                self._pass(server_reader, writer, listen=False),
            )
        except ConnectionError:
            pass  # One end was killed, which is what these tests are about.
        finally:
            writer.close()
            server_writer.close()

    def cut(self) -> None:
        """Close every connection."""
        for writer in self._writers:
            writer.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, listen: bool
    ) -> None:
        heard = b""
        while data := await reader.read(65_536):
            if listen:
                heard = heard[-len(self._word) :] + data
                if self._word in heard:
                    self.silent.set()
                if self.silent.is_set():
                    continue
            writer.write(data)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def wire_to(url: str, word: bytes) -> AsyncIterator[tuple[Wire, str]]:
    """Listen on a free port; return the wire, and the server's address by way of it."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    wire = Wire(parts.hostname, parts.port, word)
    listener = await asyncio.start_server(wire.serve, parts.hostname, 0)
    port = listener.sockets[0].getsockname()[1]
    address = parts.netloc.removesuffix(f":{parts.port}")
    try:
        yield wire, urlunsplit(parts._replace(netloc=f"{address}:{port}"))
    finally:
        listener.close()
        wire.cut()
