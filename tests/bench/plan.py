"""How long and how much is measured."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """One form of the benchmark. Times in seconds."""

    warm_up_s: float
    """Of the first load on the gateway: key, tier and balance of each team are cached then."""
    short_s: float
    """A load whose figure is steady soon."""
    long_s: float
    """A load through all services."""
    streams: int
    stream_s: float
    """How long each of the streams at once takes."""
    chunks: int
    """Of the streams whose cost for each chunk is measured."""
    decisions_s: float
    records: int
    """To be settled."""
    soak_s: float
    teams: tuple[int, ...]
    whole: bool
    """Everything, and not only the first parts."""


SHORT = Plan(
    warm_up_s=2,
    short_s=2,
    long_s=4,
    streams=500,
    stream_s=4,
    chunks=2_000,
    decisions_s=3,
    records=10_000,
    soak_s=0,
    teams=(),
    whole=False,
)
LONG = Plan(
    warm_up_s=5,
    short_s=5,
    long_s=15,
    streams=500,
    stream_s=15,
    chunks=5_000,
    decisions_s=8,
    records=50_000,
    soak_s=60,
    teams=(1_000, 100_000),
    whole=True,
)
