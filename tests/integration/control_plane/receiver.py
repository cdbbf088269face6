"""A receiver of webhooks: keeps what it gets, and answers as a test says."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from standardwebhooks.webhooks import Webhook

from quotagate.stack.ports import HOST

SECRET = "whsec_" + "c2VjcmV0IG9mIGEgcmVjZWl2ZXIgb2YgdGVzdHM="


@dataclass(frozen=True)
class Received:
    """One request. Names of headers are in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message_id(self) -> str:
        return self.headers["webhook-id"]

    def verified(self) -> Any:
        """Return the body once the official library has taken the signature."""
        return Webhook(SECRET).verify(self.body, self.headers)


@dataclass
class WebhookReceiver:
    """Answers 204, or what `answer` returns: a status, or None for silence."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    answer: Callable[[Received], int | None] = lambda _: 204
    _arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def got(self, count: int, message_id: str | None = None) -> list[Received]:
        """Return the requests, or those of one event, once there are so many."""
        async with asyncio.timeout(60), self._arrived:
            await self._arrived.wait_for(lambda: len(self.of(message_id)) >= count)
        return self.of(message_id)

    def of(self, message_id: str | None) -> list[Received]:
        return [r for r in self.received if message_id is None or r.message_id == message_id]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                request, *lines = head.strip().split("\r\n")
                headers = {
                    name.lower(): value.strip()
                    for name, _, value in (line.partition(":") for line in lines)
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                got = Received(request.split(" ")[1], headers, body)
                async with self._arrived:
                    self.received.append(got)
                    self._arrived.notify_all()
                status = self.answer(got)
                if status is None:
                    await reader.read()  # until the sender has given up
                    break
                moved = f"location: {self.url}/elsewhere\r\n" if status // 100 == 3 else ""
                writer.write(f"HTTP/1.1 {status} X\r\n{moved}content-length: 0\r\n\r\n".encode())
                await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def receiving() -> AsyncIterator[WebhookReceiver]:
    """Hold a receiver on a free port."""
    receiver = WebhookReceiver()
    server = await asyncio.start_server(receiver.serve, HOST, 0)
    receiver.url = f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
    try:
        yield receiver
    finally:
        server.close()
