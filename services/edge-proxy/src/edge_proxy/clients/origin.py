"""A provider's address, and the connections to it that wait for their next request."""

import asyncio
import ssl
from collections import deque
from collections.abc import Iterable
from urllib.parse import urlsplit

from edge_proxy.clients.answer import Answer
from edge_proxy.clients.http1 import Connection
from edge_proxy.errors import UnreachableError

_MAX_IDLE = 1024
# Shorter than servers keep an idle connection, as far as they keep one for long: a request must not
# meet the server's goodbye. A server that leaves earlier is noticed when it does.
_MAX_IDLE_S = 30.0
_PORTS = {"http": 80, "https": 443}
_LINE_ENDS = ("\r", "\n")


class Origin:
    """Asks one provider directly, without a proxy."""

    def __init__(self, base_url: str, connect_s: float, ca_pem: str | None = None) -> None:
        """Connect within `connect_s` seconds, TLS and all.

        `ca_pem` are the only certificates that vouch for the provider; None: those that this
        machine trusts.
        """
        address = urlsplit(base_url)
        self._path = address.path
        self._host = address.hostname or ""
        self._port = address.port or _PORTS[address.scheme]
        self._name = address.netloc.rpartition("@")[2]
        is_tls = address.scheme == "https"
        self._tls = ssl.create_default_context(cadata=ca_pem) if is_tls else None
        self._connect_s = connect_s
        self._idle: deque[Connection] = deque()
        self._all: set[Connection] = set()

    async def execute(
        self, method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes
    ) -> Answer:
        """Send a request and return its answer once the head has come. `path` is below the base.

        Raises:
            UnreachableError: nothing was sent.
            BrokenAnswerError: sent, perhaps; the connection broke, or what came was no HTTP.

        """
        head = self._head(method, path, headers, len(body))
        connection = self._waiting() or await self._connect()
        answer = connection.ask(head, body)
        try:
            await answer.head()
        except BaseException:
            answer.cut()
            raise
        return answer

    async def close(self) -> None:
        """Close every connection."""
        for connection in list(self._all):
            connection.abort()

    def _head(
        self, method: str, path: str, headers: Iterable[tuple[str, str]], body_bytes: int
    ) -> bytes:
        lines = [f"{method} {self._path}{path} HTTP/1.1", f"host: {self._name}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if body_bytes or method != "GET":
            lines.append(f"content-length: {body_bytes}")
        if any(end in line for line in lines for end in _LINE_ENDS):
            raise UnreachableError("a header with a line's end in it can't be sent")
        return "\r\n".join([*lines, "\r\n"]).encode("latin-1", "replace")

    def _waiting(self) -> Connection | None:
        """Return the connection that was used last, if one waits."""
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        return None

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_s):
                _, connection = await loop.create_connection(
                    lambda: Connection(self._free, self._all),
                    self._host,
                    self._port,
                    ssl=self._tls,
                    server_hostname=self._host if self._tls else None,
                )
        except (OSError, TimeoutError) as error:  # TLS's errors are OSErrors
            raise UnreachableError(f"{type(error).__name__}: {error}") from error
        return connection

    def _free(self, connection: Connection) -> None:
        """Keep a connection for the next request, and close what has waited too long."""
        now_s = asyncio.get_running_loop().time()
        connection.idle_since_s = now_s
        self._idle.append(connection)
        while self._idle and self._is_of_no_use(self._idle[0], now_s):
            self._idle.popleft().abort()

    def _is_of_no_use(self, connection: Connection, now_s: float) -> bool:
        waited_s = now_s - connection.idle_since_s
        return not connection.usable or waited_s > _MAX_IDLE_S or len(self._idle) > _MAX_IDLE
