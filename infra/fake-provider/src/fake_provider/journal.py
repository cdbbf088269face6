"""The provider's witness: what it was asked, what it answered, whether anybody heard the end.

Finished requests are kept encoded in a bounded ring, so that a million of them fit in a few
hundred megabytes; the headers only of the latest. With a file, every request is written when it
begins and again when it ends, so that the witness survives a kill: after a restart, what had begun
and not ended is `cut`.
"""

import asyncio
import itertools
import os
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from fake_provider.domain.usage import Usage

Outcome = Literal["in_flight", "completed", "client_gone", "dropped", "cut"]
"""`completed`: all of the answer (also of an error) was sent while the caller was there.
`dropped`: we closed the connection, as ordered. `cut`: we were stopped or killed meanwhile."""

_HEADERS_KEPT = 20_000
_FILE_MODE = 0o600


class Entry(msgspec.Struct, kw_only=True, array_like=True):
    """One request. Times are unix microseconds of this machine's clock; 0: not yet."""

    seq: int
    """Counts the requests from 1, in the order of their arrival."""

    request_id: str
    """As sent in `x-request-id` (Anthropic: `request-id`)."""

    method: str
    path: str
    received_at_us: int
    finished_at_us: int = 0
    marker: str = ""
    model: str = ""
    stream: bool = False
    include_usage: bool | None = None
    """As the request said it; None: it said nothing."""

    body_sha256: bytes = b""
    body_bytes: int = 0
    status: int = 0
    """As sent; 0: nothing was sent."""

    chunks_sent: int = 0
    usage: Usage | None = None
    """The last usage that was sent in a shape that a caller can read."""

    outcome: Outcome = "in_flight"


class Filter(msgspec.Struct, frozen=True):
    """Which entries are meant; an empty field means any."""

    marker: str = ""
    path: str = ""
    outcome: str = ""

    def accepts(self, entry: Entry) -> bool:
        """Return whether this entry is meant."""
        return (
            self.marker in {"", entry.marker}
            and self.path in {"", entry.path}
            and self.outcome in {"", entry.outcome}
        )


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Entry).decode

Headers = Sequence[tuple[bytes, bytes]]


class Journal:
    """All requests since the start, or since it was cleared."""

    def __init__(self, capacity: int, path: Path | None = None) -> None:
        self._finished: deque[bytes] = deque(maxlen=capacity)
        self._headers: deque[bytes] = deque(maxlen=min(capacity, _HEADERS_KEPT))
        self._in_flight: dict[int, tuple[Entry, Headers]] = {}
        self._seq = 0
        self._changed = asyncio.Event()
        self._file: int | None = None
        if path is not None:
            written = path.read_bytes() if path.exists() else b""
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _FILE_MODE)
            if written and not written.endswith(b"\n"):
                os.write(self._file, b"\n")  # a kill cut the last line off
            self._restore(written.splitlines())

    def next_seq(self) -> int:
        """Return the number of the next request."""
        self._seq += 1
        return self._seq

    def begin(self, entry: Entry, headers: Headers) -> None:
        """Keep a request that has arrived whole."""
        self._in_flight[entry.seq] = (entry, headers)
        self._write(entry, headers)
        self._changed.set()

    def finish(self, entry: Entry, outcome: Outcome) -> None:
        """Keep how it ended; if the journal was cleared meanwhile, it is forgotten."""
        entry.outcome = outcome
        entry.finished_at_us = time.time_ns() // 1000
        kept = self._in_flight.pop(entry.seq, None)
        if kept is None:
            return
        self._keep(entry, kept[1])
        self._write(entry, kept[1])
        self._changed.set()

    def clear(self) -> None:
        """Forget all requests, also those in flight."""
        self._finished.clear()
        self._headers.clear()
        self._in_flight.clear()
        if self._file is not None:
            os.ftruncate(self._file, 0)

    async def change(self) -> None:
        """Wait until something is begun or finished."""
        self._changed.clear()
        await self._changed.wait()

    def find(self, wanted: Filter, limit: int) -> list[dict[str, Any]]:
        """Return the latest entries that are meant, oldest first, with what headers are kept."""
        found = (
            _readable(entry, headers)
            for entry, headers in self._latest_first(wanted.marker)
            if wanted.accepts(entry)
        )
        return sorted(itertools.islice(found, limit), key=lambda entry: int(entry["seq"]))

    def counts(self, wanted: Filter) -> dict[str, Any]:
        """Return how many entries are meant, by outcome and status, and the usage sent to them."""
        outcomes: Counter[str] = Counter()
        statuses: Counter[str] = Counter()
        tokens: Counter[str] = Counter()
        reported = 0
        for entry, _headers in self._latest_first(wanted.marker):
            if not wanted.accepts(entry):
                continue
            outcomes[entry.outcome] += 1
            statuses[str(entry.status)] += 1
            if entry.usage is not None:
                reported += 1
                tokens.update(_tokens(entry.usage))
        return {
            "requests": outcomes.total(),
            "by_outcome": outcomes,
            "by_status": statuses,
            "with_usage": reported,
            "tokens": tokens,
        }

    def close(self) -> None:
        """Close the file; what is still in flight was cut."""
        for entry, _headers in list(self._in_flight.values()):
            self.finish(entry, "cut")
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _latest_first(self, marker: str) -> Iterator[tuple[Entry, Headers | None]]:
        """Yield all entries that may have the marker; only those are decoded."""
        yield from reversed(self._in_flight.values())
        needle = marker.encode()
        headers = itertools.chain(reversed(self._headers), itertools.repeat(None))
        for encoded, kept in zip(reversed(self._finished), headers, strict=False):
            if needle in encoded:
                yield _decode(encoded), None if kept is None else _split(kept)

    def _keep(self, entry: Entry, headers: Headers) -> None:
        self._finished.append(_encode(entry))
        self._headers.append(b"\n".join(name + b":" + value for name, value in headers))

    def _write(self, entry: Entry, headers: Headers) -> None:
        if self._file is not None:
            os.write(self._file, msgspec.json.encode(_readable(entry, headers)) + b"\n")

    def _restore(self, lines: list[bytes]) -> None:
        """Read what earlier lives wrote; lines that a kill cut off are skipped."""
        last_by_seq: dict[int, dict[str, Any]] = {}
        for line in lines:
            try:
                read = msgspec.json.decode(line, type=dict[str, Any])
            except msgspec.DecodeError:
                continue
            last_by_seq[read["seq"]] = read
        for read in last_by_seq.values():
            headers = [(name.encode(), value.encode()) for name, value in read.pop("headers")]
            read["body_sha256"] = bytes.fromhex(read["body_sha256"])
            entry = Entry(**{**read, "usage": msgspec.convert(read["usage"], Usage | None)})
            if entry.outcome == "in_flight":
                entry.outcome = "cut"
            self._keep(entry, headers)
        self._seq = max(last_by_seq, default=0)


def _split(headers: bytes) -> Headers:
    pairs = (line.partition(b":") for line in headers.split(b"\n") if line)
    return [(name, value) for name, _, value in pairs]


def _tokens(usage: Usage) -> dict[str, int]:
    tokens = msgspec.structs.asdict(usage)
    del tokens["extra"]
    return tokens


def _readable(entry: Entry, headers: Headers | None) -> dict[str, Any]:
    readable = msgspec.structs.asdict(entry)
    readable["body_sha256"] = entry.body_sha256.hex()
    readable["headers"] = (
        None
        if headers is None
        else [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
    )
    return readable
