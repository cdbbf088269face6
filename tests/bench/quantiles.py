"""Quantiles of what was measured, without interpolation: each is a value that really occurred."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_US_PER_MS = 1_000


@dataclass(frozen=True, slots=True)
class Latencies:
    """Quantiles of latencies, in milliseconds."""

    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    longest_ms: float


def quantile(ascending: Sequence[int], share: float) -> int:
    """Return the smallest value that at least `share` of all don't exceed (nearest rank).

    Raises:
        ValueError: there are no values, or the share isn't within 0 and 1.

    """
    if not ascending or not 0 <= share <= 1:
        raise ValueError("a quantile needs values, and a share within 0 and 1")
    rank = max(1, -(-int(share * 1_000_000) * len(ascending) // 1_000_000))
    return ascending[rank - 1]


def latencies(times_us: Iterable[int]) -> Latencies:
    """Return the quantiles of latencies in microseconds.

    Raises:
        ValueError: there are none: a benchmark without answers has no latency.

    """
    ascending = sorted(times_us)
    return Latencies(
        count=len(ascending),
        p50_ms=quantile(ascending, 0.50) / _US_PER_MS,
        p95_ms=quantile(ascending, 0.95) / _US_PER_MS,
        p99_ms=quantile(ascending, 0.99) / _US_PER_MS,
        longest_ms=quantile(ascending, 1) / _US_PER_MS,
    )
