"""The client's side of one request: read its body, write its answer, know when it has left."""

import asyncio
import time
from collections.abc import Mapping

from prometheus_client import Counter
from starlette.types import Message, Receive, Scope, Send

from edge_proxy.domain.headers import RawHeaders
from edge_proxy.domain.problems import BODY_TOO_SLOW, Problem, body_too_large
from edge_proxy.domain.reasons import HEADER, REASONS
from edge_proxy.domain.shapes import Shape
from edge_proxy.domain.spans import about_problem
from kit.connection_limits import Excess
from kit.http_connection import connection_of
from kit.traces.tracer import Span
from kit.traces.web import SPAN

_LINGER_S = 30.0
# What a refused client has sent by then, as clients do that send a small body with its head, needs
# no new connection for its next try: many of them at once are what a refusal should get rid of.
_SMALL_BODY_BYTES = 65_536
_SMALL_BODY_S = 0.25
_OTHER = "other"

_LIMITED = Counter(
    "quotagate_limited_total", "Answers that say that a limit refused, by its reason.", ["reason"]
)
# Each is there from the start, so that its first refusal is a rise.
_COUNTERS = {reason: _LIMITED.labels(reason) for reason in (*sorted(REASONS), _OTHER)}


def count_reason(headers: Mapping[str, str]) -> None:
    """Count an answer, if its headers say that a limit refused."""
    if HEADER in headers:
        _COUNTERS.get(headers[HEADER], _COUNTERS[_OTHER]).inc()


class ClientLeftError(Exception):
    """The client left before it had said what it wanted; nobody is there to be answered."""


class Client:
    """One request's connection. One answer at most; what comes after the client left is dropped."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, stall_s: float) -> None:
        """Answer on an ASGI connection; a client that reads nothing for `stall_s` is cut."""
        self._receive = receive
        self._send = send
        self._stall_s = stall_s
        self._connection = connection_of(scope)
        self._turn = asyncio.Lock()
        self._body_is_read = False
        self._gone = False
        self._wrote_at_s = 0.0
        self._scope = scope
        self.headers: RawHeaders = scope["headers"]
        self.span: Span | None = scope.get(SPAN)
        """The request's, if it is recorded."""
        self.started = False

    @property
    def gone(self) -> bool:
        """Whether the client has left or was cut: what is written now reaches nobody."""
        return self._gone or (self._connection is not None and self._connection.gone)

    @property
    def peer(self) -> str | None:
        """Who is at the other end of the connection; None: it has no address."""
        peer = self._scope.get("client")
        return None if peer is None else str(peer[0])

    @property
    def excess(self) -> Excess | None:
        """In which way the connection is one too many; None: it isn't."""
        return None if self._connection is None else self._connection.excess

    @property
    def silent_s(self) -> float:
        """Seconds since something was written to the client."""
        return time.monotonic() - self._wrote_at_s

    def header(self, name: bytes) -> bytes | None:
        """Return the first value of a header, whose name is in lower case."""
        return next((value for found, value in self.headers if found == name), None)

    async def body(self, max_bytes: int, timeout_s: float) -> bytes | Problem:
        """Read the body, or say why it isn't accepted.

        Raises:
            ClientLeftError: the client left while sending.

        """
        announced = self.header(b"content-length")
        if announced is not None and int(announced) > max_bytes:
            return body_too_large(max_bytes)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._read(max_bytes)
        except TimeoutError:
            return BODY_TOO_SLOW

    async def answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send a whole answer."""
        await self.start(status, {**headers, "content-length": str(len(body))})
        await self.write(body, last=True)

    async def refuse(self, problem: Problem, shape: Shape, headers: Mapping[str, str]) -> None:
        """Send a problem, readable also for a client that is still busy sending its body."""
        if self.span is not None:
            self.span.note(about_problem(problem))
        body = shape.error(problem)
        answer = {
            **headers,
            **problem.headers,
            "content-type": "application/json",
            "content-length": str(len(body)),
        }
        await self._take_small_body()
        if self._body_is_read:
            await self.start(problem.status, answer)
            await self.write(body, last=True)
            return
        await self.start(problem.status, {**answer, "connection": "close"})
        await self.write(body)
        await self._linger()
        await self.write(b"", last=True)

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send status and headers."""
        self.started = True
        count_reason(headers)
        raw = [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()]
        await self._put({"type": "http.response.start", "status": status, "headers": raw})

    async def write(self, data: bytes, *, last: bool = False) -> None:
        """Send a part of the body, as fast as the client reads."""
        await self._put({"type": "http.response.body", "body": data, "more_body": not last})

    async def _put(self, message: Message) -> None:
        if self.gone:
            return
        self._wrote_at_s = time.monotonic()
        if self._connection is not None and self._connection.idle and not self._turn.locked():
            # Nothing waits to be written, so this can't wait either, and needs no time-out.
            await self._send(message)
            return
        try:
            async with self._turn, asyncio.timeout(self._stall_s):
                await self._send(message)
        except TimeoutError:
            self._gone = True
            if self._connection is not None:
                self._connection.cut()

    async def _read(self, max_bytes: int) -> bytes | Problem:
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            self._body_is_read = True
            body: bytes = message.get("body", b"")
            return body if len(body) <= max_bytes else body_too_large(max_bytes)
        pieces = []
        size_bytes = 0
        while message["type"] == "http.request":
            pieces.append(message.get("body", b""))
            size_bytes += len(pieces[-1])
            if size_bytes > max_bytes:
                return body_too_large(max_bytes)
            if not message.get("more_body"):
                self._body_is_read = True
                return b"".join(pieces)
            message = await self._receive()
        raise ClientLeftError

    async def _take_small_body(self) -> None:
        """Read a small body that has as good as arrived, if it wasn't read."""
        if self._body_is_read or self.header(b"expect") is not None or self.excess is not None:
            return
        announced = self.header(b"content-length")
        if announced is None:
            if self.header(b"transfer-encoding") is not None:
                return
        elif int(announced) > _SMALL_BODY_BYTES:
            return
        try:
            async with asyncio.timeout(_SMALL_BODY_S):
                await self._read(_SMALL_BODY_BYTES)
        except (TimeoutError, ClientLeftError):
            return

    async def _linger(self) -> None:
        """Take in what the client is still sending, for a while.

        Closing a connection with unread bytes resets it, and the client would lose the answer that
        is on its way. A client that waits for `100 Continue` sends nothing more.
        """
        if self.header(b"expect") is not None:
            return
        try:
            async with asyncio.timeout(_LINGER_S):
                message = await self._receive()
                while message["type"] == "http.request" and message.get("more_body"):
                    message = await self._receive()
        except TimeoutError:
            return
