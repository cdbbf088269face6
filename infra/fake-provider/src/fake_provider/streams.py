"""Sends an answer as the behaviour orders: its pace, its bytes, and where it breaks."""

import zlib
from collections.abc import Awaitable, Callable, Iterator

from fake_provider.behaviour import Behaviour
from fake_provider.connection import Connection
from fake_provider.domain.frames import Frame
from fake_provider.gates import Gates
from fake_provider.journal import Entry, Outcome

_COMMENT = b": keep-alive\n\n"
_BODY_PIECES = 10
_GZIP_WINDOW = 31
"""zlib's number for the largest window with a gzip header."""


class BodySender:
    """Sends one body whose headers, its length among them, are out."""

    def __init__(self, connection: Connection, behaviour: Behaviour, gates: Gates) -> None:
        self._connection = connection
        self._behaviour = behaviour
        self._gates = gates

    async def send(self, body: bytes) -> Outcome:
        """Send it; where a stream would break after so many chunks, break after the half."""
        behaviour, connection = self._behaviour, self._connection
        half = len(body) // 2
        if behaviour.gate_after_chunks is not None:
            await connection.write(body[:half])
            await connection.wait(self._gates.of(behaviour.gate))
            body = body[half:]
        elif behaviour.hang_after_chunks is not None:
            await connection.write(body[:half])
            await connection.hold()
        elif behaviour.half_frame or behaviour.drop_after_chunks is not None:
            await connection.write(body[:half])
            await connection.drop(reset=behaviour.reset)
            return "dropped"
        elif behaviour.slow_body_ms:
            body = await self._send_slowly(body)
        await connection.end(body)
        return "completed"

    async def _send_slowly(self, body: bytes) -> bytes:
        """Send all but the last piece, which is returned."""
        size = max(-(-len(body) // _BODY_PIECES), 1)  # rounded up
        *pieces, last = [body[at : at + size] for at in range(0, len(body), size)] or [b""]
        for piece in pieces:
            await self._connection.write(piece)
            await self._connection.pause_ms(self._behaviour.slow_body_ms / _BODY_PIECES)
        return last


class Player:
    """Plays the frames of one stream."""

    def __init__(
        self, connection: Connection, behaviour: Behaviour, entry: Entry, gates: Gates
    ) -> None:
        self._connection = connection
        self._behaviour = behaviour
        self._entry = entry
        self._gates = gates
        self._gzip = zlib.compressobj(wbits=_GZIP_WINDOW) if behaviour.gzip_unasked else None
        self._write = self._write_odd if _is_odd(behaviour) else connection.write

    async def play(self, frames: Iterator[Frame], failure: Callable[[], Frame]) -> Outcome:
        """Send the frames after the headers; `failure` makes the event of an ordered error."""
        behaviour, entry = self._behaviour, self._entry
        await self._connection.pause_ms(behaviour.first_chunk_ms)
        for frame in frames:
            ended = await self._break_at(entry.chunks_sent, frame, failure)
            if ended:
                return ended
            if frame.is_last and behaviour.omit_done:
                break
            if frame.is_chunk and entry.chunks_sent:
                await self._connection.pause_ms(behaviour.chunk_interval_ms)
            await self._send(frame)
        return await self._end()

    async def _send(self, frame: Frame) -> None:
        await self._write(frame.data)
        self._entry.chunks_sent += frame.is_chunk
        if frame.usage is not None:
            self._entry.usage = frame.usage

    async def _break_at(
        self, sent: int, frame: Frame, failure: Callable[[], Frame]
    ) -> Outcome | None:
        """Do what is ordered after so many chunks, before the next frame; None: carry on."""
        behaviour = self._behaviour
        if behaviour.gate_after_chunks == sent:
            await self._connection.wait(self._gates.of(behaviour.gate))
        if behaviour.hang_after_chunks == sent:
            await self._connection.hold()
        if behaviour.drop_after_chunks == sent:
            if behaviour.half_frame:
                await self._write(frame.data[: len(frame.data) // 2])
            await self._connection.drop(reset=behaviour.reset)
            return "dropped"
        if behaviour.error_after_chunks == sent:
            await self._send(failure())
            return await self._end()
        return None

    async def _end(self) -> Outcome:
        await self._connection.end(self._gzip.flush() if self._gzip else b"")
        return "completed"

    async def _write_odd(self, data: bytes) -> None:
        """Write a frame in the bytes that are ordered."""
        behaviour = self._behaviour
        if behaviour.comments:
            data = _COMMENT + data
        if behaviour.crlf:
            data = data.replace(b"\n", b"\r\n")
        if self._gzip:
            data = self._gzip.compress(data) + self._gzip.flush(zlib.Z_SYNC_FLUSH)
        size = behaviour.split_bytes or len(data)
        write: Callable[[bytes], Awaitable[None]] = self._connection.write
        for at in range(0, len(data), size):
            await write(data[at : at + size])


def _is_odd(behaviour: Behaviour) -> bool:
    return bool(
        behaviour.comments or behaviour.crlf or behaviour.gzip_unasked or behaviour.split_bytes
    )
