"""A provider behind a proxy, asked by a client library that knows how.

What pyqwest was seen to do, and this file rests on:

- No connection (refused, no such name, TLS, time-out of connecting) is a ConnectionError.
- A connection lost before the answer's head is a RemoteProtocolError; so is one lost in the body,
  garbage in place of HTTP, and a body shorter than it said. A body that can't be decompressed is a
  ReadError.
- Cancelling `execute` closes the connection: the provider learns of it at once. Cancelling a read
  does so only most of the time, closing the response always.
- After a cancelled read the iterator says that the answer is over, as if it were whole. So a read
  that was cut is never continued here.
- Compression that nobody asked for is undone, and `content-encoding` goes with it.
"""

from collections.abc import Iterable, Mapping

from pyqwest import (
    Headers,
    HTTPTransport,
    Proxy,
    ReadError,
    RemoteProtocolError,
    Request,
    Response,
    WriteError,
)

from edge_proxy.errors import BrokenAnswerError, UnreachableError

_MAX_IDLE_CONNECTIONS = 1024
_BROKEN = (RemoteProtocolError, ReadError, WriteError)


class ProxiedAnswer:
    """One answer, as far as it has arrived."""

    def __init__(self, response: Response) -> None:
        self._response = response
        self._content = aiter(response.content)
        self._piece = b""
        self._over = False
        self.status = response.status
        self.headers: Mapping[str, str] = {
            name.lower(): value for name, value in response.headers.items()
        }
        """Names in lower case; of a repeated one the last."""

    def take(self) -> bytes:
        """Return what has arrived and wasn't taken; nothing: wait for more."""
        piece, self._piece = self._piece, b""
        return piece

    async def more(self) -> bool:
        """Wait until there is more to take; return False at the end.

        Raises:
            BrokenAnswerError: the answer ended early.

        """
        while not self._piece:
            try:
                self._piece = bytes(await anext(self._content))
            except StopAsyncIteration:
                return False
            except (*_BROKEN, ConnectionError) as error:
                raise BrokenAnswerError from error
        return True

    async def close(self) -> None:
        """Release the connection; one whose answer wasn't read to its end is closed."""
        await self._response.aclose()


class Proxied:
    """Asks one provider through a proxy. Redirects are not followed."""

    def __init__(
        self, base_url: str, connect_s: float, proxy: str, ca_pem: str | None = None
    ) -> None:
        """Connect within `connect_s` seconds; `ca_pem` as :class:`Origin` takes it."""
        self._base_url = base_url
        self._transport = HTTPTransport(
            connect_timeout=connect_s,
            pool_max_idle_per_host=_MAX_IDLE_CONNECTIONS,
            proxy=Proxy(proxy),
            tls_ca_cert=None if ca_pem is None else ca_pem.encode(),
            tls_include_system_certs=ca_pem is None,
            follow_redirects=False,
            enable_otel=False,
        )

    async def execute(
        self, method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes
    ) -> ProxiedAnswer:
        """Send a request and return its answer once the head has come. `path` is below the base.

        Raises:
            UnreachableError: nothing was sent.
            BrokenAnswerError: sent, perhaps; the connection broke, or what came was no HTTP.

        """
        request = Request(method, self._base_url + path, Headers(list(headers)), body)
        try:
            return ProxiedAnswer(await self._transport.execute(request))
        except ConnectionError as error:
            raise UnreachableError(str(error)) from error
        except _BROKEN as error:
            raise BrokenAnswerError from error

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.aclose()
