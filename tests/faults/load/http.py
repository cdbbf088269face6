"""One call on a connection of its own, and exactly what came back: nothing is tried again."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import h11

_CHUNK_BYTES = 65_536
TIMEOUT_S = 25.0


@dataclass(slots=True)
class Answer:
    """What came back, as far as it came."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    whole: bool = False
    """It came to its end in good order."""

    @property
    def error(self) -> Mapping[str, str]:
        """Return the error object of the body; empty: there is none."""
        try:
            found = json.loads(self.body)["error"]
        except (ValueError, KeyError, TypeError):
            return {}
        return found if isinstance(found, dict) else {}


Leave = Callable[[int], bool]
"""Given the bytes of the body that came, whether the client hangs up."""


async def call(
    address: tuple[str, int],
    headers: Mapping[str, str],
    body: bytes,
    leave: Leave = lambda _received: False,
) -> Answer:
    """POST to the edge's chat endpoint."""
    answer = Answer()
    writer = None
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await asyncio.open_connection(*address)
            await _exchange(reader, writer, _request(headers, body), answer, leave)
    except (OSError, TimeoutError, h11.RemoteProtocolError):
        pass  # what had come by then is what the client knows
    finally:
        if writer is not None:
            writer.transport.abort()
    return answer


def _request(headers: Mapping[str, str], body: bytes) -> bytes:
    lines = ["POST /v1/chat/completions HTTP/1.1", "host: edge", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def _exchange(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    request: bytes,
    answer: Answer,
    leave: Leave,
) -> None:
    parser = h11.Connection(h11.CLIENT)
    # It reads our request from us only to know to which one the answer belongs.
    parser.send(h11.Request(method="POST", target="/", headers=[("host", "edge")]))
    parser.send(h11.EndOfMessage())
    writer.write(request)
    await writer.drain()
    while not answer.whole:
        event = parser.next_event()
        if event is h11.NEED_DATA:
            parser.receive_data(await reader.read(_CHUNK_BYTES))
        elif isinstance(event, h11.Response):
            answer.status = event.status_code
            answer.headers = {
                name.decode(): value.decode("latin-1") for name, value in event.headers
            }
        elif isinstance(event, h11.Data):
            answer.body += event.data
            if leave(len(answer.body)):
                return
        elif isinstance(event, h11.EndOfMessage):
            answer.whole = True
        elif isinstance(event, h11.ConnectionClosed):
            return
