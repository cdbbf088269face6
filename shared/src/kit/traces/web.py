"""Requests over HTTP: a span each, from its head to the end of its answer.

What comes with a `traceparent` goes on with that trace. Whoever is behind finds the header replaced
by this span's own, so that what is recorded of a request elsewhere names the same trace.
"""

from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contracts.contract import TRACEPARENT
from kit.traces.tracer import Attributes, Kind, Span, Tracer

SPAN = "quotagate.span"
"""Where a request's scope has its span, if it is recorded."""

_NAME = TRACEPARENT.encode()
_UNTRACED = frozenset({"/health/live", "/health/ready", "/metrics"})
_OTHER = "_OTHER"
_METHODS = frozenset({"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"})
# Of what an address may name, what is an id of ours, once the answer proved that it is one.
_IDS = ("team_id", "key_id", "tier_id")


class TracedApp:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, tracer: Tracer) -> None:
        """Trace what `app` answers; `tracer` is closed when it has shut down."""
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or live for a while."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, self._closing(send))
        elif scope["path"] in _UNTRACED:
            await self._app(scope, receive, send)
        else:
            await self._traced(scope, receive, send)

    async def _traced(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"] if scope["method"] in _METHODS else _OTHER
        attributes: Attributes = {
            "http.request.method": method,
            "url.scheme": scope["scheme"],
            "network.protocol.version": scope["http_version"],
        }
        name = "HTTP" if method == _OTHER else method
        with self._tracer.begin(name, Kind.SERVER, _parent(scope), attributes) as span:
            if span is None:
                await self._app(scope, receive, send)
                return
            _put(scope, self._tracer.current() or "")
            scope[SPAN] = span
            status = 0

            async def observe(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            try:
                await self._app(scope, receive, observe)
            finally:
                _end(span, scope, method, status)

    def _closing(self, send: Send) -> Send:
        """Close the tracer when all is closed, before the server hears of that and leaves."""

        async def closing(message: Message) -> None:
            if message["type"].startswith("lifespan.shutdown."):
                await self._tracer.close()
            await send(message)

        return closing


def _parent(scope: Scope) -> str | None:
    found = [value for name, value in scope["headers"] if name == _NAME]
    return found[0].decode("latin-1") if found else None


def _put(scope: Scope, traceparent: str) -> None:
    others = [(name, value) for name, value in scope["headers"] if name != _NAME]
    scope["headers"] = [*others, (_NAME, traceparent.encode())]


def _end(span: Span, scope: Scope, method: str, status: int) -> None:
    # A template of ours; an address may hold anything.
    route = getattr(scope.get("route"), "path", None)
    if route is not None:
        span.rename(f"{method} {route}")
        span.note({"http.route": route})
    if not status:
        span.fail("no_answer")
        return
    span.note({"http.response.status_code": status})
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        span.fail(str(status))
    elif status < HTTPStatus.BAD_REQUEST:
        named = scope.get("path_params", {})
        span.note({f"quotagate.{name}": named[name] for name in _IDS if name in named})
