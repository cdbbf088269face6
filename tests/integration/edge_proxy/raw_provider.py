"""A provider at the level of bytes: it sends what it is told to, whatever HTTP says."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

Script = Callable[["Conversation"], Awaitable[None]]

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass(slots=True)
class Conversation:
    """One request that has been read, and the connection to answer it on."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: bytes
    body: bytes

    async def say(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(data)
        await self.writer.drain()

    async def chunk(self, data: bytes) -> None:
        """Send bytes as one HTTP chunk; none end the answer."""
        await self.say(b"%x\r\n%b\r\n" % (len(data), data))

    async def until_left(self) -> None:
        """Wait until the other side closes."""
        with contextlib.suppress(ConnectionError):
            await self.reader.read(1)


@dataclass(slots=True)
class RawProvider:
    """Listens on a free port; every request runs the script of the moment."""

    address: str = ""
    script: Script | None = None
    conversations: list[Conversation] = field(default_factory=list)
    open: int = 0
    """Connections that nobody has closed."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hold one connection."""
        self.open += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            length = next(line for line in lines if line.startswith(b"content-length:"))
            body = await reader.readexactly(int(length.partition(b":")[2]))
            conversation = Conversation(reader, writer, head, body)
            self.conversations.append(conversation)
            if self.script is not None:
                await self.script(conversation)
        writer.close()
        self.open -= 1


@contextlib.asynccontextmanager
async def raw_provider() -> AsyncIterator[RawProvider]:
    """Run one."""
    provider = RawProvider()
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    provider.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield provider
    finally:
        server.close()
