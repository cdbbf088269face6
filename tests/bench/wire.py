"""A NATS client with nothing in it: floods a subject with questions, so many at a time.

The client library costs as much for a question as admission does for the answer, and would measure
itself.
"""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

from kit.ids import new_id

_CRLF = b"\r\n"
_NS_PER_US = 1_000


class WireError(Exception):
    """The server hung up, or refused what was sent."""


@dataclass(frozen=True, slots=True)
class Question:
    """One message that is answered."""

    subject: str
    payload: bytes
    message_id: str | None = None


@dataclass(slots=True)
class Answers:
    """What came back."""

    elapsed_s: float = 0.0
    times_us: list[int] = field(default_factory=list)
    samples: list[bytes] = field(default_factory=list)
    """The first few payloads."""
    errors: int = 0
    """Answers with headers: a code instead of a reply, or nobody there."""


Ask = Callable[[], Question | None]
"""Returns the next question; None: there are no more."""
_SAMPLES = 3


class Wire(asyncio.Protocol):
    """One connection."""

    def __init__(self, ask: Ask, user: str, password: str) -> None:
        self._ask = ask
        self._login = {
            "user": user,
            "pass": password,
            "verbose": False,
            "pedantic": False,
            "lang": "bench",
            "version": "1",
            "protocol": 1,
            "headers": True,
            "no_responders": True,
        }
        self._inbox = f"_INBOX.{new_id()}"
        self._buffer = b""
        self._sent_us: dict[bytes, int] = {}
        self._number = 0
        self._began_us = 0
        self._transport: asyncio.Transport | None = None
        self._in_flight = 0
        self.answers = Answers()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def begin(self, in_flight: int) -> None:
        """Log in, and ask so many questions at once."""
        transport = self._open
        transport.write(b"CONNECT " + json.dumps(self._login).encode() + _CRLF)
        transport.write(f"SUB {self._inbox}.* 1\r\n".encode())
        self._began_us = _now_us()
        transport.writelines([self._next() for _ in range(in_flight)])

    @property
    def _open(self) -> asyncio.Transport:
        if self._transport is None:
            raise WireError("not connected")
        return self._transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        self._transport = cast("asyncio.Transport", transport)  # of uvloop, another class

    def connection_lost(self, exc: Exception | None) -> None:
        """Say so to who waits."""
        if not self.done.done():
            self.done.set_exception(WireError("the server hung up"))

    def data_received(self, data: bytes) -> None:
        """Take answers, and ask as many questions again."""
        self._buffer += data
        questions = []
        at = 0
        while (end := self._buffer.find(_CRLF, at)) >= 0:
            line = self._buffer[at:end]
            if line.startswith((b"MSG", b"HMSG")):
                size_bytes = int(line.rpartition(b" ")[2])
                following = end + 2 + size_bytes + 2
                if len(self._buffer) < following:
                    break
                self._take(line, self._buffer[end + 2 : following - 2])
                questions.append(self._next())
                at = following
                continue
            at = end + 2
            if line.startswith(b"PING"):
                self._open.write(b"PONG\r\n")
            elif line.startswith(b"-ERR") and not self.done.done():
                self.done.set_exception(WireError(line.decode()))
        self._buffer = self._buffer[at:]
        if questions:
            self._open.write(b"".join(questions))
        if not self._in_flight and self._number and not self.done.done():
            self.answers.elapsed_s = (_now_us() - self._began_us) / 1_000_000
            self.done.set_result(None)
            self._open.close()

    def _take(self, line: bytes, payload: bytes) -> None:
        self._in_flight -= 1
        answers = self.answers
        number = line.split(b" ", 2)[1].rpartition(b".")[2]
        answers.times_us.append(_now_us() - self._sent_us.pop(number))
        answers.errors += line.startswith(b"H")
        if len(answers.samples) < _SAMPLES:
            answers.samples.append(payload)

    def _next(self) -> bytes:
        question = self._ask()
        if question is None:
            return b""
        self._in_flight += 1
        self._number += 1
        number = b"%d" % self._number
        self._sent_us[number] = _now_us()
        address = f"{question.subject} {self._inbox}.".encode() + number
        payload = question.payload
        if question.message_id is None:
            return b"PUB %b %d\r\n%b\r\n" % (address, len(payload), payload)
        head = f"NATS/1.0\r\nNats-Msg-Id: {question.message_id}\r\n\r\n".encode()
        sizes = b"%d %d" % (len(head), len(head) + len(payload))
        return b"HPUB %b %b\r\n%b%b\r\n" % (address, sizes, head, payload)


async def flood(url: str, login: tuple[str, str], ask: Ask, in_flight: int) -> Answers:
    """Ask until there are no more questions; return when all are answered.

    Raises:
        WireError: the server hung up or refused.

    """
    address = urlsplit(url)
    _, wire = await asyncio.get_running_loop().create_connection(
        lambda: Wire(ask, *login), address.hostname or "127.0.0.1", address.port or 4222
    )
    wire.begin(in_flight)
    await wire.done
    return wire.answers


def _now_us() -> int:
    return time.perf_counter_ns() // _NS_PER_US
