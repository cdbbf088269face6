"""Sends to the operator's webhook: the one address of the settings, and no other."""

import asyncio
from collections.abc import Sequence

from pyqwest import Headers, HTTPTransport, ReadError, RemoteProtocolError, Request, WriteError

from control_plane.domain.webhooks import Answer

_BROKEN = (RemoteProtocolError, ReadError, WriteError, ConnectionError)


class Receiver:
    """Posts to one address. Redirects are not followed; what it answers is not read."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self._transport = HTTPTransport(
            connect_timeout=timeout_s,
            tls_include_system_certs=True,
            follow_redirects=False,
            enable_otel=False,
        )

    async def post(self, headers: Sequence[tuple[str, str]], body: bytes) -> Answer:
        """Send once; return the status, or why there was none within the time."""
        request = Request("POST", self._url, Headers(headers), body)
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._transport.execute(request)
                await response.aclose()
        except TimeoutError:
            return Answer(error="timeout")
        except _BROKEN as error:
            return Answer(error="unreachable" if isinstance(error, ConnectionError) else "broken")
        return Answer(status=response.status)

    async def close(self) -> None:
        """Close every connection."""
        await self._transport.aclose()
