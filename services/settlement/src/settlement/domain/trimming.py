"""Up to where the stream may forget: only what was settled longer ago than the replay window."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """Where a record stands in the stream, and since when it needs nothing more from there.

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
