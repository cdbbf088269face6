"""The evidence, arranged for look-ups."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from faults.evidence import Entry, Evidence, Record, Request

from contracts.usage import Usage, UsdPerMillion

ItemT = TypeVar("ItemT")
KeyT = TypeVar("KeyT")

_CLASSES = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")


def cost_usd(usage: Usage, price: UsdPerMillion) -> Fraction:
    """Return the exact price, by other means than those that are under test."""
    return sum(
        (
            getattr(usage, name) * Fraction(getattr(price, name)) / 10**6
            for name in _CLASSES
            if getattr(usage, name)
        ),
        Fraction(0),
    )


def ceil_nano_usd(amount_usd: Fraction) -> int:
    """Return nano-USD, rounded up as a rough debit is."""
    return math.ceil(amount_usd * 10**9)


def floor_nano_usd(amount_usd: Decimal) -> int:
    """Return nano-USD, rounded down as a cached balance is."""
    return math.floor(Fraction(amount_usd) * 10**9)


def grouped(items: Iterable[ItemT], key: Callable[[ItemT], KeyT]) -> Mapping[KeyT, Sequence[ItemT]]:
    """Return the items by their key; none where there are none."""
    groups: defaultdict[KeyT, list[ItemT]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


class Index:
    """Evidence by marker, record, inference and team."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.requests: Mapping[str, Request] = {each.marker: each for each in evidence.requests}
        self.served = grouped(evidence.served, lambda served: served.marker)
        self.records = grouped(evidence.records, lambda record: record.marker)
        self.records_by_inference = grouped(evidence.records, lambda record: record.inference_id)
        self.record_by_id: Mapping[int, Record] = {
            each.record_id: each for each in evidence.records
        }
        self.charges = grouped(evidence.charges, lambda charge: charge.record_id)
        self.charges_by_entry = grouped(evidence.charges, lambda charge: charge.entry_id)
        self.entries: Mapping[str, Sequence[Entry]] = {
            team_id: sorted(entries, key=lambda entry: entry.version)
            for team_id, entries in grouped(evidence.entries, lambda entry: entry.team_id).items()
        }

    def succeeded(self, request: Request) -> Sequence[Record]:
        """Return the records of a request's inference that say that it succeeded."""
        return [
            record
            for record in self.records_by_inference.get(request.inference_id or "", ())
            if record.outcome == "succeeded"
        ]

    def rough_debit_nano_usd(self, request: Request, record: Record) -> int | None:
        """Return what an attempt takes from the cached balance; None: nothing that is known."""
        price = self.evidence.prices.get(record.price_id or "")
        if request.usage is None or price is None:
            return None
        return ceil_nano_usd(cost_usd(request.usage, price))
