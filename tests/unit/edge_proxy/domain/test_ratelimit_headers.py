"""Durations and waits as header text; whole header sets are checked with the vectors."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.admission import LimitState, RateState
from edge_proxy.domain.ratelimit_headers import duration, rate_limit_headers, retry_headers


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (0, "0s"),
        (1, "1ms"),
        (1_000, "1ms"),
        (1_001, "2ms"),
        (120_000, "120ms"),
        (999_000, "999ms"),
        (999_001, "1s"),
        (1_000_000, "1s"),
        (1_200_000, "1.2s"),
        (1_020_000, "1.02s"),
        (59_999_000, "59.999s"),
        (59_999_001, "1m0s"),
        (60_000_000, "1m0s"),
        (360_000_000, "6m0s"),
        (360_500_000, "6m0.5s"),
        (3_600_000_000, "1h0m0s"),
        (3_661_001_000, "1h1m1.001s"),
        (90_000_000_000, "25h0m0s"),
    ],
)
def test_duration(time_us: int, text: str) -> None:
    assert duration(time_us) == text


@pytest.mark.parametrize(
    ("retry_after_us", "seconds", "milliseconds"),
    [
        pytest.param(1, "1", "1", id="a microsecond"),
        pytest.param(1_000_000, "1", "1000", id="a second exactly"),
        pytest.param(1_000_001, "2", "1001", id="a microsecond more"),
        pytest.param(600_000_000, "600", "600000", id="ten minutes"),
        pytest.param(0, "1", "1", id="never zero"),
    ],
)
def test_retry_headers(retry_after_us: int, seconds: str, milliseconds: str) -> None:
    assert retry_headers(retry_after_us) == {
        "retry-after": seconds,
        "retry-after-ms": milliseconds,
    }


def test_further_limits_have_headers_where_the_tier_has_them() -> None:
    state = LimitState(
        limit_requests=1,
        remaining_requests=1,
        reset_requests_us=0,
        limit_tokens=1,
        remaining_tokens=1,
        reset_tokens_us=0,
    )
    assert len(rate_limit_headers(state)) == 6
    further = msgspec.structs.replace(
        state,
        input_tokens=RateState(limit=80, remaining=79, reset_us=750_000),
        output_tokens=RateState(limit=20, remaining=20, reset_us=0),
        remaining_day_requests=0,
        remaining_day_tokens=7,
    )
    told = rate_limit_headers(further)
    assert {name: told[name] for name in told.keys() - rate_limit_headers(state).keys()} == {
        "x-ratelimit-limit-input-tokens": "80",
        "x-ratelimit-remaining-input-tokens": "79",
        "x-ratelimit-reset-input-tokens": "750ms",
        "x-ratelimit-limit-output-tokens": "20",
        "x-ratelimit-remaining-output-tokens": "20",
        "x-ratelimit-reset-output-tokens": "0s",
        "x-ratelimit-remaining-day-requests": "0",
        "x-ratelimit-remaining-day-tokens": "7",
    }


@settings(deadline=None)
@given(st.integers(0, 10**16))
def test_a_duration_always_has_units_and_reads_back(time_us: int) -> None:
    text = duration(time_us)
    assert _read_ms(text) == -(-time_us // 1000)


def _read_ms(text: str) -> int:
    if text.endswith("ms"):
        return int(text[:-2])
    assert text.endswith("s")
    total_ms = 0
    for unit, unit_ms in (("h", 3_600_000), ("m", 60_000), ("s", 1_000)):
        if unit in text:
            number, text = text.split(unit, 1)
            whole, _, fraction = number.partition(".")
            total_ms += int(whole) * unit_ms + int(fraction.ljust(3, "0") if fraction else 0)
    assert text == ""
    return total_ms
