"""Uvicorn's HTTP protocol with a farewell: a process that stops lets no client run into it.

Uvicorn closes idle connections at once when it is told to stop, while a request may be on its way
on one: its client meets a reset and can't know whether the request was carried out.
"""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

LINGER_S = 1.0
"""Seconds that a connection without a request stays open after we were told to stop.

Whoever sends one meanwhile is answered, and told by `connection: close` to go elsewhere.
"""


class LeavingProtocol(HttpToolsProtocol):
    """One client connection that is closed only after an answer that announces it, or unused."""

    leaving = False
    """Whether we were told to stop."""

    def shutdown(self) -> None:
        """Begin to leave: called by the server when it is told to stop."""
        self.leaving = True
        request = self._request
        if request is None:
            self._linger()
        elif not request.response_started:
            request.keep_alive = False
        # A response that has started hasn't announced it: the connection lingers after it.

    def on_headers_complete(self) -> None:
        """Let the application answer; while leaving, with the announcement."""
        super().on_headers_complete()
        request = self._request
        if self.leaving and request is not None:
            request.keep_alive = False

    def on_response_complete(self) -> None:
        """Wait for the next request; while leaving, not for long."""
        super().on_response_complete()
        if self.leaving and self._request is None:
            self._linger()

    @property
    def _request(self) -> RequestResponseCycle | None:
        """The request that isn't answered yet."""
        latest: RequestResponseCycle | None = self.cycle
        return None if latest is None or latest.response_complete else latest

    def _linger(self) -> None:
        self.loop.call_later(LINGER_S, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self._request is None and not self.transport.is_closing():
            self.transport.close()
