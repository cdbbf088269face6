"""HTTP/1.1 as a caller, on the event loop's own transport.

A client library that works in threads of its own costs two changes of thread for every piece of an
answer; measured, that was a third of the edge's processor and most of what a chunk of a stream
cost. Here what the kernel has is taken in one go, however many chunks it is. httptools, which
uvicorn reads requests with, reads the answers.

What a provider may do is bounded: the head of an answer, what waits unread (then the connection is
read no further), and what one step of decompression yields.
"""

import asyncio
from collections.abc import Callable
from typing import cast

import httptools

from edge_proxy.clients.answer import Answer
from edge_proxy.errors import BrokenAnswerError

_MAX_HEAD_BYTES = 256 * 1024
_FIRST_FINAL_STATUS = 200


class Connection(asyncio.Protocol):
    """One connection to a provider; one request at a time."""

    def __init__(self, free: Callable[["Connection"], None], known: set["Connection"]) -> None:
        """Call `free` when another request may follow; be among the `known` while open."""
        self._free = free
        self._known = known
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._answer: Answer | None = None
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._in_head = True
        self._interim = False
        self._ends_with_connection = False
        self.idle_since_s = 0.0

    @property
    def usable(self) -> bool:
        """Whether a request may be sent: nothing is under way, and the provider hasn't left."""
        return (
            self._answer is None
            and self._transport is not None
            and not self._transport.is_closing()
        )

    def ask(self, head: bytes, body: bytes) -> Answer:
        """Send a request; return its answer, of which nothing has arrived yet."""
        if self._transport is None or self._answer is not None:
            raise RuntimeError("a connection is asked once it is open, one question at a time")
        self._answer = answer = Answer(self)
        self._parser = httptools.HttpResponseParser(self)
        self._in_head = True
        self._head_bytes = 0
        self._transport.writelines((head, body) if body else (head,))
        return answer

    def abort(self) -> None:
        """Close at once; the provider learns of it."""
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        """Read no further for now."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # Of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Be open."""
        self._transport = cast("asyncio.Transport", transport)  # of uvloop, another class
        self._known.add(self)

    def data_received(self, data: bytes) -> None:
        """Read on in the answer."""
        if self._answer is None or self._parser is None:
            self.abort()  # an answer that nobody asked for
            return
        if self._in_head:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._break()
            return
        if self._in_head and self._head_bytes > _MAX_HEAD_BYTES:
            self._break()

    def eof_received(self) -> bool:
        """Close, too."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Know that nothing more comes."""
        self._known.discard(self)
        answer, self._answer = self._answer, None
        if answer is not None:
            whole = exc is None and self._ends_with_connection and not self._in_head
            answer.end(None if whole else BrokenAnswerError())

    def _break(self) -> None:
        self.abort()
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.end(BrokenAnswerError())

    # Of the parser.

    def on_message_begin(self) -> None:
        """Begin an answer, perhaps an interim one."""
        if self._answer is None:
            self.abort()  # an answer that nobody asked for
        self._headers = {}
        self._in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Begin the body."""
        if self._parser is None or self._answer is None:
            return
        status = self._parser.get_status_code()
        self._interim = status < _FIRST_FINAL_STATUS
        if self._interim:
            return
        self._in_head = False
        self._ends_with_connection = (
            "content-length" not in self._headers and "transfer-encoding" not in self._headers
        )
        self._answer.begin(status, self._headers)

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        if self._answer is not None:
            self._answer.add(body)

    def on_message_complete(self) -> None:
        """End the answer; another request may follow, if the provider stays."""
        if self._interim or self._answer is None or self._parser is None:
            return
        answer, self._answer = self._answer, None
        stays = self._parser.should_keep_alive() and not self._ends_with_connection
        answer.end()
        if stays:
            self.resume()
            self._free(self)
        elif self._transport is not None:
            self._transport.close()
