"""A TLS server in front of another one, which remembers what it was sent."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from integration.edge_proxy.certificates import Certificate


@dataclass(slots=True)
class Front:
    """Ends TLS and passes on what it reads, both ways."""

    behind_port: int
    port: int = 0
    connections: int = 0
    """Those whose handshake came to its end."""
    received: bytearray = field(default_factory=bytearray)
    """Decrypted."""
    versions: set[str] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hold one connection."""
        self.connections += 1
        self.versions.add(writer.get_extra_info("ssl_object").version())
        answers, asks = await asyncio.open_connection("127.0.0.1", self.behind_port)
        try:
            await asyncio.gather(self._pass_on(reader, asks, self.received), _pass(answers, writer))
        finally:
            writer.close()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray
    ) -> None:
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while data := await reader.read(65_536):
                kept += data
                writer.write(data)
                await writer.drain()
        writer.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def tls_front(certificate: Certificate, behind_port: int) -> AsyncIterator[Front]:
    """Run one on a free port of 127.0.0.1."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate.pem, certificate.key)
    front = Front(behind_port)
    server = await asyncio.start_server(front.serve, "127.0.0.1", 0, ssl=context)
    front.port = server.sockets[0].getsockname()[1]
    try:
        yield front
    finally:
        server.close()


@contextlib.asynccontextmanager
async def connect_proxy() -> AsyncIterator[str]:
    """Run a proxy that opens tunnels on this machine; yield its address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        port = int(asked.split()[1].rpartition(b":")[2])
        answers, asks = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(_pass(reader, asks), _pass(answers, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
