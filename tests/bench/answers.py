"""Reads an HTTP/1.1 answer as it arrives: only what tells where it ends, and a stream's events."""

_HEAD_ENDS = b"\r\n\r\n"
_BODY_ENDS = b"0\r\n\r\n"
_EVENT = b"data:"
_STATUS = slice(9, 12)


class Answer:
    """One answer. Its body has a length, or comes in chunks whose last one ends a piece."""

    __slots__ = ("_head", "_left_bytes", "_tail", "body_began", "closes", "frames", "status")

    def __init__(self) -> None:
        self._head: bytes | None = b""
        self._left_bytes: int | None = None
        self._tail = b""
        self.status = 0
        self.frames = 0
        """Events of a stream, the last one included."""
        self.body_began = False
        self.closes = False
        """The server will close the connection."""

    @property
    def whole(self) -> bool:
        """Whether the end was reached."""
        if self._head is not None:
            return False
        return self._tail == _BODY_ENDS if self._left_bytes is None else self._left_bytes <= 0

    def feed(self, data: bytes) -> None:
        """Take a piece."""
        if self._head is not None:
            head, found, data = (self._head + data).partition(_HEAD_ENDS)
            if not found:
                self._head = head
                return
            self._head = None
            self._read_head(head.lower())
        if not data:
            return
        self.body_began = True
        if self._left_bytes is None:
            # An event's first bytes may stand at the end of one piece and the start of the next.
            seam = self._tail[1:] + data[: len(_EVENT) - 1]
            self.frames += data.count(_EVENT) + (seam.count(_EVENT) if self._tail else 0)
            self._tail = (self._tail + data[-len(_BODY_ENDS) :])[-len(_BODY_ENDS) :]
        else:
            self._left_bytes -= len(data)

    def _read_head(self, head: bytes) -> None:
        self.status = int(head[_STATUS])
        self.closes = b"connection: close" in head
        _, _, after = head.partition(b"content-length:")
        if after:
            self._left_bytes = int(after.partition(b"\r\n")[0])
