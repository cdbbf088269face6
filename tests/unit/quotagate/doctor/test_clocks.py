"""Clocks that differ by more than a second, whatever the time it took to ask them."""

import pytest

from quotagate.doctor.clocks import Reading, clock_flaws

S = 1_000_000

CASES = [
    pytest.param([], None, id="nobody was asked"),
    pytest.param([Reading("redis", 0, 0), Reading("nats", S, 0)], None, id="a second is allowed"),
    pytest.param(
        [Reading("redis", 0, 0), Reading("nats", 2 * S, 0)],
        "clocks: nats is 2.0 s or more ahead of redis",
        id="one is ahead",
    ),
    pytest.param(
        [Reading("redis", -3 * S, 0)],
        "clocks: this machine is 3.0 s or more ahead of redis",
        id="one is behind this machine",
    ),
    pytest.param(
        [Reading("redis", -700_000, 0), Reading("nats", 700_000, 0)],
        "clocks: nats is 1.4 s or more ahead of redis",
        id="both are near this machine, and far from each other",
    ),
    pytest.param(
        [Reading("redis", 2 * S, 1_500_000)], None, id="a slow answer may explain the difference"
    ),
    pytest.param(
        [Reading("redis", 5 * S, 1_500_000)],
        "clocks: redis is 3.5 s or more ahead of this machine",
        id="a slow answer can't explain the difference",
    ),
]


@pytest.mark.parametrize(("readings", "what"), CASES)
def test_clocks_are_compared(readings: list[Reading], what: str | None) -> None:
    assert [flaw.what for flaw in clock_flaws(readings)] == ([what] if what else [])
    assert not any(flaw.dangerous for flaw in clock_flaws(readings))
