"""What one record adds to its team's day."""

import msgspec

from contracts.inference import InferenceRecord


class Day(msgspec.Struct, frozen=True):
    """From `start_us` until before `end_us`, unix microseconds."""

    start_us: int
    end_us: int

    def has(self, moment_us: int) -> bool:
        """Return whether a moment is in it."""
        return self.start_us <= moment_us < self.end_us


class Share(msgspec.Struct, frozen=True):
    """A record's requests and tokens of one day, and by what it is known."""

    inference_id: str
    attempt_no: int
    requests: int
    tokens: int


def share_of(record: InferenceRecord, day: Day) -> Share | None:
    """Return what a record adds to a day; None: nothing.

    A request counts when it began, as preflight counts it, its tokens when it ended, as postflight
    does; both by the edge's clock.
    """
    began_us = record.started_at_us
    ended_us = began_us if record.finished_at_us is None else record.finished_at_us
    is_first = record.attempt_no == 1 and day.has(began_us)
    tokens = 0
    if record.usage is not None and day.has(ended_us):
        tokens = record.usage.total
    if not is_first and not tokens:
        return None
    return Share(record.inference_id, record.attempt_no, int(is_first), tokens)
