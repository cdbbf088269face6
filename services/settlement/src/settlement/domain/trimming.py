"""Up to where the stream may forget.

In its time, what was settled longer ago than the replay window. Early, while the stream is nearly
full, what is settled at all: a shorter window is better than refused calls. Never what isn't.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

# Early trimming goes on until the stream holds this part of the share at which it began.
_EARLY_UNTIL = 7 / 8


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A stream sequence with a record, and since when it needs nothing more from there.

    `done_at` is the database's clock: when it was settled, or, where there is nothing to charge,
    when it was stored. None: it waits for its charge.
    """

    stream_sequence: int
    done_at: datetime | None


def first_to_keep(records: Iterable[StoredRecord], cutoff: datetime) -> int | None:
    """Return the sequence below which all may go; None: nothing may.

    `records` come in the order of their sequences, from the stream's first on, and none is left
    out. A sequence without a record was a duplicate or a dead letter; it goes with its successor.
    """
    keep = None
    for record in records:
        if record.done_at is None or record.done_at >= cutoff:
            break
        keep = record.stream_sequence + 1
    return keep


@dataclass(frozen=True, slots=True)
class Extent:
    """What the stream holds. Sequences rise by one; `last` < `first`: it is empty."""

    first: int
    last: int
    bytes: int
    max_bytes: int | None
    """What it may hold before publishers are refused; None: as much as the server's disk."""


def is_nearly_full(extent: Extent, share: float) -> bool:
    """Return whether the stream holds more than a share of what it may."""
    return extent.max_bytes is not None and extent.bytes > extent.max_bytes * share


def surplus(extent: Extent, share: float) -> int:
    """Return how many of its oldest sequences a stream must lose so that it is well below a share.

    By their average size, rounded up: where the oldest are small, another look finds a rest.
    """
    if extent.max_bytes is None:
        return 0
    too_many_bytes = extent.bytes - int(extent.max_bytes * share * _EARLY_UNTIL)
    if too_many_bytes <= 0:
        return 0
    return -(-too_many_bytes * (extent.last - extent.first + 1) // extent.bytes)


@dataclass(frozen=True, slots=True)
class SettledRun:
    """The front of the stream as far as nothing in it waits for a charge."""

    end: int
    """The first sequence after it."""
    unknown: Sequence[int]
    """Sequences in it under which no record is stored."""
    newest_done_at: datetime | None
    """The latest `done_at` in it; None: it has no records."""


def settled_run(records: Iterable[StoredRecord], sequences: range) -> SettledRun:
    """Return how far nothing waits among `sequences`.

    `records` are all that are stored under these sequences, in their order.
    """
    done: dict[int, datetime] = {}
    end = sequences.stop
    for record in records:
        if record.stream_sequence >= end:
            break
        if record.done_at is None:
            end = record.stream_sequence
            break
        done[record.stream_sequence] = record.done_at
    unknown = [sequence for sequence in range(sequences.start, end) if sequence not in done]
    return SettledRun(end, unknown, max(done.values(), default=None))
