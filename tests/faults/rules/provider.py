"""What the provider saw: it is the witness of what was really sent."""

from collections.abc import Iterator

from faults.evidence import Window
from faults.rules.index import Index
from faults.rules.rule import Rule, Violation

# An admission's deadline of 250 ms, and the way from there to the provider on a busy machine.
_ON_THE_WAY_US = 1_000_000


def every_request_is_recorded(index: Index) -> Iterator[Violation]:
    """Each request of the provider has a record of its own, if only one that knows nothing."""
    for marker, all_served in index.served.items():
        if marker not in index.requests:
            continue  # not of this load
        records = index.records.get(marker, ())
        named = {record.provider_request_id for record in records}
        unnamed = sum(record.provider_request_id is None for record in records)
        unseen = [served for served in all_served if served.request_id not in named]
        for served in unseen[unnamed:]:
            yield Violation(
                Rule.INVISIBLE_REQUEST,
                f"{marker} of {index.requests[marker].team_id}",
                f"{served.request_id} ({served.outcome}); {len(records)} records of {named or ''}",
            )


def nobody_was_admitted_blindly(index: Index) -> Iterator[Violation]:
    """No request arrives while nobody could know the limits, less those already on their way."""
    windows = index.evidence.windows
    delays = [window for window in windows if window.delays_dispatch]
    blind = [
        window
        for window in windows
        if window.store_unknown and not any(_overlap(window, delay) for delay in delays)
    ]
    for served in index.evidence.served:
        for window in blind:
            since_us = served.received_at_us - window.start_us
            if since_us > _ON_THE_WAY_US and served.received_at_us < window.end_us:
                yield Violation(
                    Rule.ADMITTED_BLINDLY,
                    served.marker,
                    f"arrived {since_us} µs after {window.fault} of {window.target} began",
                )


def _overlap(one: Window, other: Window) -> bool:
    return one.start_us < other.end_us and other.start_us < one.end_us
