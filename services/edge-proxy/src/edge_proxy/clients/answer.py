"""One answer of a provider, as far as it has arrived, decompressed as it is taken."""

import asyncio
import zlib
from collections.abc import Mapping
from typing import Protocol

from edge_proxy.errors import BrokenAnswerError

_MAX_UNREAD_BYTES = 256 * 1024
_MAX_STEP_BYTES = 1024**2
# Told by itself whether it is zlib's or gzip's.
_ANY_ZLIB_BITS = zlib.MAX_WBITS | 32
_ZLIB_CODINGS = frozenset({"gzip", "x-gzip", "deflate"})
_NO_CODING = frozenset({"", "identity"})


class _Connection(Protocol):
    """What an answer may ask of its connection."""

    def abort(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


class Answer:
    """One answer, as far as it has arrived."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self._pieces: list[bytes] = []
        self._unread_bytes = 0
        self._decompressor: zlib._Decompress | None = None
        self._error: BrokenAnswerError | None = None
        self._over = False
        self._waiter: asyncio.Future[None] | None = None
        self.began = False
        self.status = 0
        self.headers: dict[str, str] = {}
        """Names in lower case; of a repeated one the last."""

    async def head(self) -> None:
        """Wait for status and headers.

        Raises:
            BrokenAnswerError: the connection broke before, or what came was no HTTP.

        """
        while not self.began:
            await self._arrival()
        coding = self.headers.get("content-encoding", "").strip().lower()
        if coding in _ZLIB_CODINGS:
            self._decompressor = zlib.decompressobj(_ANY_ZLIB_BITS)
            del self.headers["content-encoding"]
        elif coding not in _NO_CODING:
            self.cut()
            raise BrokenAnswerError(
                f"an answer compressed as {coding[:32]}, which nobody asked for"
            )

    def take(self) -> bytes:
        """Return what has arrived and wasn't taken, decompressed; nothing: wait for more.

        Raises:
            BrokenAnswerError: it can't be decompressed.

        """
        if self._decompressor is not None:
            return self._decompressed(self._decompressor)
        if not self._pieces:
            return b""
        taken = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._has_room()
        return taken

    async def more(self) -> bool:
        """Wait until there is more to take; return False at the end.

        Raises:
            BrokenAnswerError: the answer ended early.

        """
        while not self._pieces:
            if self._over:
                if self._decompressor is not None and not self._decompressor.eof:
                    raise BrokenAnswerError
                return False
            await self._arrival()
        return True

    async def close(self) -> None:
        """Take no more; an answer that isn't over takes its connection along."""
        self.cut()

    def cut(self) -> None:
        """Do the same at once."""
        if not self._over:
            self._over = True
            self._connection.abort()

    async def _arrival(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _decompressed(self, decompressor: "zlib._Decompress") -> bytes:
        """Take one step: a small piece may grow into much."""
        while self._pieces:
            piece = self._pieces.pop(0)
            try:
                taken = decompressor.decompress(piece, _MAX_STEP_BYTES)
            except zlib.error as error:
                raise BrokenAnswerError from error
            if decompressor.unused_data:
                raise BrokenAnswerError
            if len(taken) == _MAX_STEP_BYTES:
                self._pieces.insert(0, decompressor.unconsumed_tail)  # and what is within it
            elif not self._pieces:
                self._has_room()
            if taken:
                return taken
        return b""

    def _has_room(self) -> None:
        if self._unread_bytes > _MAX_UNREAD_BYTES and not self._over:
            self._connection.resume()
        self._unread_bytes = 0

    # What follows is the connection's to call.

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Take status and headers."""
        self.began = True
        self.status = status
        self.headers.update(headers)
        self._wake()

    def add(self, piece: bytes) -> None:
        """Take a piece of the body."""
        self._pieces.append(piece)
        before_bytes = self._unread_bytes
        self._unread_bytes += len(piece)
        if before_bytes <= _MAX_UNREAD_BYTES < self._unread_bytes:
            self._connection.pause()
        self._wake()

    def end(self, error: BrokenAnswerError | None = None) -> None:
        """Know that nothing follows, or that what follows is lost."""
        if self._over:
            return
        if error is None:
            self._over = True
        else:
            self._error = error
        self._wake()
