"""Calls to providers, bounded in time from the dispatch to the last byte.

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
- Environment variables for proxies apply unless a proxy is named.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

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

from edge_proxy.domain.routes import Provider, Target
from edge_proxy.errors import (
    AnswerTooLargeError,
    BrokenAnswerError,
    ProviderTimeoutError,
    UnreachableError,
)

_MAX_IDLE_CONNECTIONS = 1024
_TAIL_WAIT_S = 1.0
# A named proxy switches those of the environment off; this one is used for no address.
_NO_PROXY = Proxy("http://127.0.0.1:9/", no_proxy="0.0.0.0/0,::/0,*")

_BROKEN = (RemoteProtocolError, ReadError, WriteError)


class Exchange:
    """One request and its answer."""

    def __init__(self, transport: HTTPTransport, target: Target, request: Request) -> None:
        self._transport = transport
        self._timeouts = target.timeouts
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._deadline_s = self._loop.time() + target.timeouts.total_s
        self._wait: asyncio.Timeout | None = None
        self._response: Response | None = None
        self._content: AsyncIterator[bytes | bytearray | memoryview] | None = None
        self.status = 0
        self.headers: Mapping[str, str] = {}
        """The answer's, names in lower case; of a repeated one the last."""

    async def open(self) -> None:
        """Send the request and wait for the answer's head.

        Raises:
            UnreachableError: nothing was sent.
            ProviderTimeoutError: sent, perhaps; no head in time.
            BrokenAnswerError: sent, perhaps; the connection broke, or what came was no HTTP.

        """
        try:
            async with self._patience(self._timeouts.first_byte_s) as self._wait:
                self._response = await self._transport.execute(self._request)
        except ConnectionError as error:
            raise UnreachableError from error
        except TimeoutError as error:
            raise ProviderTimeoutError from error
        except _BROKEN as error:
            raise BrokenAnswerError from error
        finally:
            self._wait = None
        self.status = self._response.status
        self.headers = {name.lower(): value for name, value in self._response.headers.items()}
        self._content = aiter(self._response.content)

    async def next(self) -> bytes | None:
        """Return the next piece of the answer, decompressed; None: it ended as it should.

        Raises:
            ProviderTimeoutError: nothing came in time.
            BrokenAnswerError: the answer ended early.

        """
        if self._content is None:
            raise RuntimeError("open() comes before next()")
        try:
            async with self._patience(self._timeouts.idle_s) as self._wait:
                return bytes(await anext(self._content))
        except StopAsyncIteration:
            return None
        except TimeoutError as error:
            await self.close()
            raise ProviderTimeoutError from error
        except (*_BROKEN, ConnectionError) as error:
            raise BrokenAnswerError from error
        finally:
            self._wait = None

    async def whole(self, max_bytes: int) -> bytes:
        """Return the rest of the answer.

        Raises:
            AnswerTooLargeError: it is larger than `max_bytes`, decompressed.
            ProviderTimeoutError: it didn't come in time.
            BrokenAnswerError: it ended early.

        """
        pieces = []
        size_bytes = 0
        while (piece := await self.next()) is not None:
            pieces.append(piece)
            size_bytes += len(piece)
            if size_bytes > max_bytes:
                raise AnswerTooLargeError
        return b"".join(pieces)

    def hurry(self, left_s: float) -> None:
        """Give the provider no more than `left_s` from now, also for what is waited for now."""
        self._deadline_s = min(self._deadline_s, self._loop.time() + left_s)
        wait = self._wait
        if wait is None or wait.expired():
            return
        when_s = wait.when()
        if when_s is None or when_s > self._deadline_s:
            wait.reschedule(self._deadline_s)

    async def skip_tail(self) -> None:
        """Read what follows the last event, normally nothing, so that the connection is reused."""
        self.hurry(_TAIL_WAIT_S)
        try:
            while await self.next() is not None:
                pass
        except (ProviderTimeoutError, BrokenAnswerError):
            return

    async def close(self) -> None:
        """Release the connection; one whose answer wasn't read to its end is closed."""
        if self._response is not None:
            await self._response.aclose()

    def _patience(self, wait_s: float) -> asyncio.Timeout:
        return asyncio.timeout_at(min(self._loop.time() + wait_s, self._deadline_s))


class ProviderClient:
    """Connections to every provider of the routes. Redirects are not followed."""

    def __init__(self, providers: Mapping[str, Provider]) -> None:
        self._transports = {name: _transport(provider) for name, provider in providers.items()}

    def exchange(
        self,
        target: Target,
        path: str,
        headers: Sequence[tuple[str, str]],
        body: bytes,
        *,
        method: str = "POST",
    ) -> Exchange:
        """Return an exchange with a target, not yet begun. `path` is below the base URL."""
        provider = target.provider
        credentials = provider.adapter.credentials(provider.api_key) if provider.api_key else ()
        request = Request(method, provider.base_url + path, Headers([*headers, *credentials]), body)
        return Exchange(self._transports[provider.name], target, request)

    async def close(self) -> None:
        """Close every connection."""
        for transport in self._transports.values():
            await transport.aclose()


def _transport(provider: Provider) -> HTTPTransport:
    return HTTPTransport(
        connect_timeout=provider.connect_s,
        pool_max_idle_per_host=_MAX_IDLE_CONNECTIONS,
        proxy=Proxy(provider.proxy) if provider.proxy else _NO_PROXY,
        tls_include_system_certs=True,
        follow_redirects=False,
        enable_otel=False,
    )
