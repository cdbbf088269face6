"""The load generator's process: a load on standard input, what came of it on standard output.

Written on asyncio's protocols over uvloop, with only as much HTTP as the two servers it meets
speak, so that one process sends several times more requests than a gateway on the same machine
can answer. `python -m bench` measures how many against a server that does nothing.
"""

import asyncio
import contextlib
import random
import resource
import sys
import threading
import time
from collections import deque
from typing import cast

import msgspec
import uvloop
from bench.answers import Answer
from bench.load import Load, Measured

_HOST = "127.0.0.1"
_OK = 200
_US_PER_S = 1_000_000
_RECONNECT_S = 0.02


def _now_us() -> int:
    return time.perf_counter_ns() // 1_000


class _Connection(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self, generator: "_Generator", port: int) -> None:
        self._generator = generator
        self._port = port
        self._transport: asyncio.Transport | None = None
        self._answer = Answer()
        self._began_us: int | None = None
        self._first_us = 0

    async def open(self) -> None:
        """Connect, and again until it works."""
        loop = asyncio.get_running_loop()
        while not self._generator.over:
            try:
                await loop.create_connection(lambda: self, _HOST, self._port)
            except OSError:
                self._generator.failed(None)
                await asyncio.sleep(_RECONNECT_S)
            else:
                return

    def send(self, began_us: int) -> None:
        """Send one request, which began or should have begun then."""
        if self._transport is None:
            raise RuntimeError("a connection sends while it is open")
        self._began_us = began_us
        self._first_us = 0
        self._answer = Answer()
        self._transport.write(self._generator.request())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the first request."""
        self._transport = cast("asyncio.Transport", transport)  # of uvloop, another class
        self._generator.free(self)

    def data_received(self, data: bytes) -> None:
        """Take a piece of the answer."""
        answer = self._answer
        answer.feed(data)
        began_us = self._began_us
        if began_us is None:
            return
        if answer.whole:
            self._began_us = None
            self._generator.answered(answer, began_us, self._first_us)
            if answer.closes and self._transport is not None:
                self._transport.close()
            else:
                self._generator.free(self)
        elif answer.body_began and not self._first_us:
            self._first_us = _now_us()

    def connection_lost(self, exc: Exception | None) -> None:
        """Open another one."""
        self._transport = None
        if self._began_us is not None:
            began_us, self._began_us = self._began_us, None
            self._generator.failed(began_us)
        if not self._generator.over:
            self._generator.reopen(self)

    def close(self) -> None:
        """Leave."""
        if self._transport is not None:
            self._transport.abort()


class _Generator:
    """Sends a load, and keeps what came of it."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._rng = random.Random(1)  # noqa: S311 # the same choice of keys every time
        self._whole = [load.head + key + load.tail for key in load.keys[:1]]
        self._free: deque[_Connection] = deque()
        self._due_us: deque[int] = deque()
        self._lateness_us: list[int] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._counts_from_us = 0
        self._ends_us = 0
        self._begun = 0
        self._under_way = 0
        self._statuses: dict[int, int] = {}
        self._ok_us: list[int] = []
        self._other_us: list[int] = []
        self._first_byte_us: list[int] = []
        self._frames = 0
        self._failures = 0
        self._last_us = 0
        self.over = False

    def request(self) -> bytes:
        """Return the next request."""
        load = self._load
        if len(load.keys) == 1:
            return self._whole[0]
        return b"".join((load.head, self._rng.choice(load.keys), load.tail))

    async def run(self) -> Measured:
        """Send it all."""
        load = self._load
        start_us = _now_us()
        self._counts_from_us = start_us + int(load.warm_up_s * _US_PER_S)
        self._ends_us = self._counts_from_us + int(load.duration_s * _US_PER_S)
        connections = [
            _Connection(self, load.ports[number % len(load.ports)])
            for number in range(load.connections)
        ]
        for connection in connections:
            self.reopen(connection)
        if load.rate_per_s:
            self._start_pace(load.rate_per_s)
        await asyncio.sleep((self._counts_from_us - _now_us()) / _US_PER_S)
        _say(b"!")
        cpu_s = _cpu_s()
        while _now_us() < self._ends_us and not self._is_done():
            await asyncio.sleep(0.01)
        ended_us = _now_us()
        cpu_s = _cpu_s() - cpu_s
        late = len(self._due_us) + self._under_way
        self.over = True
        for connection in connections:
            connection.close()
        if load.requests is not None:
            ended_us = self._last_us or ended_us
        return self._measured((ended_us - self._counts_from_us) / _US_PER_S, late, cpu_s)

    def free(self, connection: _Connection) -> None:
        """Give a connection its next request, or keep it for one."""
        if self.over or (self._load.requests is not None and self._begun >= self._load.requests):
            return
        if self._load.rate_per_s is None:
            self._begin(connection, _now_us())
        elif self._due_us:
            self._begin(connection, self._due_us.popleft())
        else:
            self._free.append(connection)

    def answered(self, answer: Answer, began_us: int, first_us: int) -> None:
        """Count a whole answer."""
        self._under_way -= 1
        now_us = _now_us()
        if began_us < self._counts_from_us or now_us > self._ends_us or self.over:
            return
        self._last_us = now_us
        self._statuses[answer.status] = self._statuses.get(answer.status, 0) + 1
        self._frames += answer.frames
        (self._ok_us if answer.status == _OK else self._other_us).append(now_us - began_us)
        if first_us:
            self._first_byte_us.append(first_us - began_us)

    def failed(self, began_us: int | None) -> None:
        """Count a connection that was refused or broke, in its request if `began_us` says so."""
        self._under_way -= began_us is not None
        if not self.over and _now_us() >= self._counts_from_us:
            self._failures += 1

    def reopen(self, connection: _Connection) -> None:
        """Open a connection, in the background."""
        if connection in self._free:
            self._free.remove(connection)
        task = asyncio.get_running_loop().create_task(connection.open())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _begin(self, connection: _Connection, began_us: int) -> None:
        self._begun += 1
        self._under_way += 1
        connection.send(began_us)

    def _is_done(self) -> bool:
        asked = self._load.requests
        return asked is not None and self._begun >= asked and self._under_way == 0

    def _start_pace(self, rate_per_s: float) -> None:
        """Let requests begin evenly in time, called by a thread that does nothing but sleep.

        The loop's own timers count milliseconds: requests would come in small bursts.
        """
        loop = asyncio.get_running_loop()
        interval_us = _US_PER_S / rate_per_s

        def pace() -> None:
            due_us = float(_now_us())
            while not self.over:
                wait_us = due_us - _now_us()
                if wait_us > 0:
                    time.sleep(wait_us / _US_PER_S)
                with contextlib.suppress(RuntimeError):  # the loop is closed: it is over
                    loop.call_soon_threadsafe(self._fall_due, int(due_us))
                due_us += interval_us

        threading.Thread(target=pace, daemon=True).start()

    def _fall_due(self, due_us: int) -> None:
        if self.over:
            return
        if self._free:
            self._lateness_us.append(_now_us() - due_us)
            self._begin(self._free.popleft(), due_us)
        else:
            self._due_us.append(due_us)

    def _measured(self, elapsed_s: float, late: int, cpu_s: float) -> Measured:
        return Measured(
            elapsed_s=elapsed_s,
            statuses=self._statuses,
            failures=self._failures,
            late=late,
            ok_us=self._ok_us,
            other_us=self._other_us,
            first_byte_us=self._first_byte_us,
            frames=self._frames,
            cpu_s=cpu_s,
            lateness_us=self._lateness_us,
        )


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _say(told: bytes) -> None:
    """Write all of it, also where standard output is unbuffered and may cut what is long."""
    with open(sys.stdout.fileno(), "wb", closefd=False) as out:
        out.write(told)


def main() -> None:
    """Make the load that standard input describes."""
    load = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Load)
    mistakes: list[str] = []
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.get_loop().set_exception_handler(lambda _loop, told: mistakes.append(str(told)))
        measured = runner.run(_Generator(load).run())
    if mistakes:
        sys.exit(f"{len(mistakes)} mistakes of the load generator, the first: {mistakes[0]}")
    _say(msgspec.msgpack.encode(measured))


if __name__ == "__main__":
    main()
