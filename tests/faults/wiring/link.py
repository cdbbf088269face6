"""One wire: a TCP proxy between one client program and one server."""

import asyncio
import contextlib
import socket
from collections import deque
from dataclasses import dataclass

_CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a wire does to what it carries. The default is nothing.

    Held bytes arrive when the trouble is over, also those of a client that has left meanwhile: the
    late packet. After bytes were lost a connection is of no use, so it is cut in the end.
    """

    delay_s: float = 0
    """Everything takes so much longer, in both directions."""
    hold_requests: bool = False
    hold_replies: bool = False
    lose_requests: bool = False
    lose_replies: bool = False
    refuse: bool = False
    """Connections are cut, and new ones are reset at once."""


NONE = Trouble()


class _Direction:
    """One direction of a connection: what has arrived and isn't passed on yet, in its order."""

    def __init__(self, link: "Link", *, requests: bool) -> None:
        self._link = link
        self._requests = requests
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._arrival = asyncio.Event()
        self.tainted = False
        """Bytes were lost."""

    async def take(self, reader: asyncio.StreamReader) -> None:
        """Take in what arrives, to its end; a reset is an end too."""
        loop = asyncio.get_running_loop()
        data = b"?"
        while data:
            try:
                data = await reader.read(_CHUNK_BYTES)
            except OSError:
                data = b""
            self._link.taken_bytes += len(data)
            self._waiting.append((loop.time(), data))
            self._arrival.set()

    async def give(self, writer: asyncio.StreamWriter) -> None:
        """Pass on what the link lets pass, to its end."""
        while True:
            arrived_s, data = await self._next()
            await self._link.passable(arrived_s, requests=self._requests)
            if not data:
                break
            trouble = self._link.trouble
            if trouble.lose_requests if self._requests else trouble.lose_replies:
                self.tainted = True
                self._link.lost_bytes += len(data)
                continue
            try:
                writer.write(data)
                await writer.drain()
            except (OSError, RuntimeError):  # the second is uvloop's for one that is closed already
                break
        writer.close()

    async def _next(self) -> tuple[float, bytes]:
        while not self._waiting:
            self._arrival.clear()
            await self._arrival.wait()
        return self._waiting.popleft()


class Link:
    """A wire. All methods but `__init__` belong to the loop that it runs on."""

    def __init__(self, name: str, target: tuple[str, int]) -> None:
        """Listen on a free port; serve only once :meth:`open` is called."""
        self.name = name
        self.target = target
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.trouble = NONE
        self.taken_bytes = 0
        self.lost_bytes = 0
        self._changed = asyncio.Event()
        self._open: dict[asyncio.Task[None], list[_Direction]] = {}
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Begin to serve."""
        self._server = await asyncio.start_server(self._serve, sock=self._socket)

    async def close(self) -> None:
        """Cut everything and listen no longer."""
        if self._server is not None:
            self._server.close()
        await self.cut()

    async def cut(self) -> None:
        """Reset every connection, with whatever was held on it."""
        await self._cut(list(self._open))

    async def begin(self, trouble: Trouble) -> None:
        """Make trouble from now on."""
        self._set(trouble)
        if trouble.refuse:
            await self.cut()

    async def end(self) -> None:
        """Make no more trouble: held bytes go on, connections that lost some are cut."""
        self._set(NONE)
        await self._cut(
            [task for task, ways in self._open.items() if any(way.tainted for way in ways)]
        )

    async def passable(self, arrived_s: float, *, requests: bool) -> None:
        """Return when bytes that arrived then may pass."""
        loop = asyncio.get_running_loop()
        while True:
            trouble, changed = self.trouble, self._changed
            held = trouble.hold_requests if requests else trouble.hold_replies
            left_s = arrived_s + trouble.delay_s - loop.time()
            if not held and left_s <= 0:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if held else left_s):
                    await changed.wait()

    def _set(self, trouble: Trouble) -> None:
        self.trouble = trouble
        self._changed.set()
        self._changed = asyncio.Event()

    async def _cut(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.trouble.refuse:
            _reset(writer)
            return
        task = asyncio.current_task()
        assert task is not None
        ways = [_Direction(self, requests=True), _Direction(self, requests=False)]
        self._open[task] = ways
        try:
            await self._carry(reader, writer, *ways)
        finally:
            del self._open[task]

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        requests: _Direction,
        replies: _Direction,
    ) -> None:
        taking = asyncio.ensure_future(requests.take(reader))
        writers = [writer]
        try:
            await self.passable(asyncio.get_running_loop().time(), requests=True)
            server_reader, server_writer = await asyncio.open_connection(*self.target)
            writers.append(server_writer)
            async with asyncio.TaskGroup() as group:
                group.create_task(requests.give(server_writer))
                group.create_task(replies.take(server_reader))
                group.create_task(replies.give(writer))
        except (OSError, asyncio.CancelledError):
            # Nobody listens there, or we were cut: the other side shall learn of it as of a reset.
            for each in writers:
                _reset(each)
        finally:
            taking.cancel()
            for each in writers:
                each.close()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a reset instead of a goodbye."""
    found = writer.get_extra_info("socket")
    if found is not None and found.fileno() >= 0:
        # On, with no time to linger: the kernel answers everything from now on with a reset.
        linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
        with contextlib.suppress(OSError):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()
