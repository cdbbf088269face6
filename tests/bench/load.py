"""A load, what came of it, and the process that makes it.

The load generator is a process of its own: its garbage, its quantiles and the benchmark's own work
take no time from the loop that sends and receives.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import msgspec

_TESTS = Path(__file__).parents[1]
_OK = 200


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Requests to send. Each is `head`, one of the `keys` at random, and `tail`."""

    ports: tuple[int, ...]
    """On 127.0.0.1; connections are spread evenly."""
    head: bytes
    keys: tuple[bytes, ...]
    tail: bytes
    connections: int
    """How many requests are under way at most."""
    duration_s: float
    """How long is measured, after the warm-up."""
    warm_up_s: float = 1.0
    """Requests begun in it aren't counted."""
    rate_per_s: float | None = None
    """Requests begin at this rate whatever happens to earlier ones, and wait where no connection
    is free; their latency counts from when they should have begun. None: each connection sends
    its next request when it has its answer."""
    requests: int | None = None
    """End after so many, rather than when the time is over."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a load, for the requests that were begun after the warm-up."""

    elapsed_s: float
    statuses: dict[int, int]
    """Whole answers that arrived within the time, by status."""
    failures: int
    """Connections that broke or were refused, and answers that were cut."""
    late: int
    """Requests that had begun, or should have, and had no answer when the time was over."""
    ok_us: list[int]
    """Latencies of the answers with status 200, in microseconds."""
    other_us: list[int]
    """Latencies of the others."""
    first_byte_us: list[int]
    """Until the first byte of the body; only where it came before the last one."""
    frames: int
    """Events of streams."""
    cpu_s: float
    """What the generator itself used, user and system."""
    lateness_us: list[int] = []
    """At a rate: how much later than they should have the requests began that had a connection."""

    @property
    def ok(self) -> int:
        """How many answers had status 200."""
        return self.statuses.get(_OK, 0)

    @property
    def ok_per_s(self) -> float:
        """Answers with status 200 per second."""
        return self.ok / self.elapsed_s

    @property
    def answered(self) -> int:
        """How many answers came, whatever they said."""
        return sum(self.statuses.values())

    @property
    def not_ok(self) -> int:
        """How many answers had another status, or never came whole."""
        return self.answered - self.ok + self.failures

    @property
    def not_ok_in_words(self) -> str:
        """What those were."""
        others = [f"{n} × {status}" for status, n in self.statuses.items() if status != _OK]
        broken = [f"{self.failures} broken connections"] if self.failures else []
        return f"answers that weren't 200: {', '.join(others + broken) or 'none'}"

    @property
    def cpu_share(self) -> float:
        """Which share of one core the generator used; near 1 it measured itself."""
        return self.cpu_s / self.elapsed_s


class LoadError(Exception):
    """The load generator failed."""


class Running:
    """A load under way."""

    def __init__(self, load: Load) -> None:
        """Begin it."""
        self._load = load
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-m", "bench.generator"],
            env={**os.environ, "PYTHONPATH": str(_TESTS)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        stdin = _pipe(self._process.stdin)
        stdin.write(msgspec.msgpack.encode(load))
        stdin.close()
        # It says so when the warm-up is over, and from then on what others use is measured too.
        if _pipe(self._process.stdout).read(1) != b"!":
            self._process.communicate()
            raise LoadError("the load generator didn't begin")

    def result(self) -> Measured:
        """Wait for the end.

        Raises:
            LoadError: the generator failed; what it said is on the standard error.

        """
        with self._process:
            told = _pipe(self._process.stdout).read()
        if self._process.returncode != 0:
            raise LoadError(f"the load generator left with status {self._process.returncode}")
        return msgspec.msgpack.decode(told, type=Measured)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise LoadError("the load generator has no pipe")
    return pipe


def run(load: Load) -> Measured:
    """Make a load to its end."""
    return Running(load).result()
