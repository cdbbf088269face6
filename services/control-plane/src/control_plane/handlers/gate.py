"""The gate in front of the admin API: the token first, then a body bounded in size and time.

Everything behind the gate needs the token, also what is added later: the gate wraps the whole
application and knows nothing of its routes.
"""

import asyncio
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from control_plane.handlers.errors import INVALID_REQUEST, SERVER_ERROR, ErrorDetail, respond


@dataclass(frozen=True, slots=True)
class BodyBounds:
    """How large a body may be, and how long it may take to arrive."""

    max_bytes: int
    timeout_s: float


class Gate:
    """Lets a request with the admin token through, with its body already read."""

    def __init__(
        self, app: ASGIApp, token: str, bounds: BodyBounds, is_open: Callable[[], bool]
    ) -> None:
        """Guard `app`; while `is_open` says no, nothing passes."""
        self._app = app
        self._is_open = is_open
        self._token = token.encode()
        self._bounds = bounds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            raise RuntimeError(f"the admin API speaks HTTP, not {scope['type']}")
        headers = Headers(scope=scope)
        if not self._is_admin(headers):
            await _unauthorized()(scope, receive, send)
            return
        if not self._is_open():
            await _closed()(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._bounds.timeout_s):
                body = await self._read(receive)
        except TimeoutError:
            await _too_slow()(scope, receive, send)
            return
        if body is None:
            await self._too_large()(scope, receive, send)
        elif body and not _is_json(headers):
            await _not_json()(scope, receive, send)
        else:
            await self._app(scope, _replay(body, receive), send)

    def _is_admin(self, headers: Headers) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        # Header values arrive as Latin-1, and comparing bytes takes the same time for any of them.
        is_token = hmac.compare_digest(token.strip().encode("latin-1"), self._token)
        return scheme.lower() == "bearer" and is_token

    async def _read(self, receive: Receive) -> bytes | None:
        """Return the body; None: it is too large.

        Such a body is read to its end all the same, and dropped, or its sender would find the
        connection reset instead of our answer. The time-out bounds that too.
        """
        chunks: list[bytes] = []
        total_bytes = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return b""  # nobody is there to read what follows
            chunk: bytes = message.get("body", b"")
            total_bytes += len(chunk)
            if total_bytes <= self._bounds.max_bytes:
                chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks) if total_bytes <= self._bounds.max_bytes else None

    def _too_large(self) -> Response:
        return respond(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            ErrorDetail(
                type=INVALID_REQUEST,
                code="request_too_large",
                message=f"The body is larger than {self._bounds.max_bytes} bytes.",
            ),
            {"Connection": "close"},
        )


def _unauthorized() -> Response:
    return respond(
        HTTPStatus.UNAUTHORIZED,
        ErrorDetail(
            type="authentication_error",
            code="invalid_admin_token",
            message="Send the admin token as `Authorization: Bearer <token>`.",
        ),
        {"WWW-Authenticate": "Bearer"},
    )


def _closed() -> Response:
    """Return the answer while the database doesn't answer yet, or wouldn't keep what it commits."""
    return respond(
        HTTPStatus.SERVICE_UNAVAILABLE,
        ErrorDetail(
            type=SERVER_ERROR,
            code="service_unavailable",
            message="The control plane is not ready; /health/ready says why.",
        ),
        {"Retry-After": "1"},
    )


def _too_slow() -> Response:
    return respond(
        HTTPStatus.REQUEST_TIMEOUT,
        ErrorDetail(
            type=INVALID_REQUEST,
            code="request_timeout",
            message="The body took too long to arrive.",
        ),
        {"Connection": "close"},
    )


def _not_json() -> Response:
    return respond(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        ErrorDetail(
            type=INVALID_REQUEST,
            code="unsupported_media_type",
            message="Send the body as JSON, with the header `Content-Type: application/json`.",
        ),
    )


def _is_json(headers: Headers) -> bool:
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    return media_type == "application/json"


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a receive that gives the body at once, and afterwards what the connection says."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
