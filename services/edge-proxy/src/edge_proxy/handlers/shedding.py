"""Refuse what is too much before anything is done for it.

A request that becomes a task, is routed, and is answered by way of ASGI costs half of one that is
served; at three times the capacity that leaves nothing for those who could be. Here it is read by
the parser and answered in the same breath, on a connection that stays.
"""

from collections.abc import Mapping
from typing import cast

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from edge_proxy.domain.endpoints import ENDPOINTS
from edge_proxy.domain.problems import TOO_BUSY
from edge_proxy.handlers.client import count_reason
from edge_proxy.handlers.edge import Gate
from edge_proxy.handlers.inference import REFUSALS
from kit.http_connection import BoundedProtocol

# A larger body is refused on the usual way, which knows how to deal with one that keeps coming.
_MAX_BODY_BYTES = 65_536
_STATUS_LINE = b"HTTP/1.1 503 Service Unavailable\r\n"

_REFUSED = REFUSALS.labels(TOO_BUSY.code)


def _answer(path: str) -> bytes:
    """Return what follows the status line and the server's own headers."""
    (shape,) = (row.shape for row in ENDPOINTS if row.path == path)
    body = shape.error(TOO_BUSY)
    headers = {
        **TOO_BUSY.headers,
        "content-type": "application/json",
        "content-length": str(len(body)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return lines.encode("ascii") + b"\r\n" + body


_ANSWERS: Mapping[bytes, bytes] = {row.path.encode(): _answer(row.path) for row in ENDPOINTS}


class SheddingProtocol(BoundedProtocol):
    """One client connection, whose requests are refused at the door while too much is in hand."""

    gate: Gate
    _refusal: bytes | None = None

    def on_headers_complete(self) -> None:
        """Let the application take over, or don't."""
        self._refusal = self._answer_at_the_door()
        if self._refusal is None:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        if self._refusal is None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Refuse, once the request is whole."""
        if self._refusal is None:
            super().on_message_complete()
            return
        refusal, self._refusal = self._refusal, None
        self.head_is_over()
        _REFUSED.inc()
        count_reason(TOO_BUSY.headers)
        own = b"".join(b"%b: %b\r\n" % pair for pair in self.server_state.default_headers)
        self.transport.write(_STATUS_LINE + own + refusal)
        self.on_response_complete()

    def _answer_at_the_door(self) -> bytes | None:
        """Return the refusal of a request whose head has come; None: it goes its usual way."""
        edge = self.gate.edge
        if edge is None or not edge.in_flight.full:
            return None
        refusal = _ANSWERS.get(self.url)
        earlier = cast("RequestResponseCycle | None", self.cycle)  # None at first
        usual = (
            refusal is None
            or (earlier is not None and not earlier.response_complete)
            or self.expect_100_continue
            # Those have something else to be told.
            or self.leaving
            or self.excess is not None
            or self.parser.get_method() != b"POST"
            or self.parser.get_http_version() != "1.1"
            or not self.parser.should_keep_alive()
            or not self._is_small()
            # A client that doesn't read its answers gets no more of them.
            or self.transport.get_write_buffer_size() > 0
        )
        edge.in_flight.refused()
        return None if usual else refusal

    def _is_small(self) -> bool:
        announced = [value for name, value in self.headers if name == b"content-length"]
        return len(announced) == 1 and int(announced[0]) <= _MAX_BODY_BYTES


def shedding(gate: Gate) -> type[SheddingProtocol]:
    """Return the protocol of a gate's clients."""
    return type("SheddingProtocol", (SheddingProtocol,), {"gate": gate})
