"""Calls to providers, bounded in time from the dispatch to the last byte."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from edge_proxy.clients.origin import Origin
from edge_proxy.clients.proxied import Proxied
from edge_proxy.domain.routes import Provider, Target
from edge_proxy.errors import AnswerTooLargeError, BrokenAnswerError, ProviderTimeoutError

_TAIL_WAIT_S = 1.0


class _Answer(Protocol):
    """What :mod:`answer` and :mod:`proxied` know of an answer."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def take(self) -> bytes: ...
    async def more(self) -> bool: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request; `path` is below the provider's base URL."""

    method: str
    path: str
    headers: Sequence[tuple[str, str]]
    body: bytes


class Exchange:
    """One request and its answer."""

    def __init__(self, way: Origin | Proxied, target: Target, request: Outgoing) -> None:
        self._way = way
        self._timeouts = target.timeouts
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._deadline_s = self._loop.time() + target.timeouts.total_s
        self._wait: asyncio.Timeout | None = None
        self._answer: _Answer | None = None
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
        request = self._request
        try:
            async with self._patience(self._timeouts.first_byte_s) as self._wait:
                self._answer = await self._way.execute(
                    request.method, request.path, request.headers, request.body
                )
        except TimeoutError as error:
            raise ProviderTimeoutError from error
        finally:
            self._wait = None
        self.status = self._answer.status
        self.headers = self._answer.headers

    async def next(self) -> bytes | None:
        """Return what has arrived of the answer, decompressed; None: it ended as it should.

        Raises:
            ProviderTimeoutError: nothing came in time.
            BrokenAnswerError: the answer ended early.

        """
        if self._answer is None:
            raise RuntimeError("open() comes before next()")
        if self._loop.time() >= self._deadline_s:
            await self.close()
            raise ProviderTimeoutError
        try:
            while not (piece := self._answer.take()):
                async with self._patience(self._timeouts.idle_s) as self._wait:
                    if not await self._answer.more():
                        return None
        except TimeoutError as error:
            await self.close()
            raise ProviderTimeoutError from error
        finally:
            self._wait = None
        return piece

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
        if self._answer is not None:
            await self._answer.close()

    def _patience(self, wait_s: float) -> asyncio.Timeout:
        return asyncio.timeout_at(min(self._loop.time() + wait_s, self._deadline_s))


class ProviderClient:
    """Connections to every provider of the routes. Redirects are not followed."""

    def __init__(self, providers: Mapping[str, Provider]) -> None:
        self._ways = {name: _way_to(provider) for name, provider in providers.items()}

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
        request = Outgoing(method, path, [*headers, *credentials], body)
        return Exchange(self._ways[provider.name], target, request)

    async def close(self) -> None:
        """Close every connection."""
        for way in self._ways.values():
            await way.close()


def _way_to(provider: Provider) -> Origin | Proxied:
    if provider.proxy:
        return Proxied(provider.base_url, provider.connect_s, provider.proxy, provider.ca_pem)
    return Origin(provider.base_url, provider.connect_s, provider.ca_pem)
