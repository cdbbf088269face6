"""Unknown spend and our side of a reconciliation, out of records that are there."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from integration.quotagate.scratch import Scratch
from integration.tables.rows import add_record

from quotagate.days import Days
from quotagate.reconcile import Measure, our_totals
from quotagate.unknown_spend import unknown_spend

_DAY = date(2025, 3, 1)
_DAYS = Days(_DAY, _DAY)
_UNKNOWN = {
    "usage_source": "missing",
    "state": "UNBILLABLE",
    **dict.fromkeys(
        (
            "input_tokens",
            "cache_read_tokens",
            "cache_write_5m_tokens",
            "cache_write_1h_tokens",
            "output_tokens",
            "reasoning_tokens",
        )
    ),
}


@pytest.fixture
async def books(scratch: Scratch) -> Scratch:
    """A day of the past, with attempts of every kind, at its edges too."""
    held = {"state": "HELD", "held_reason": "x"}

    async def attempt(at: str, **changes: Any) -> None:
        await add_record(
            scratch.engine("settlement"),
            "a",
            started_at=datetime.fromisoformat(f"{at}+00:00"),
            **({"model_sent": "large", "status_code": 200} | changes),
        )

    await attempt("2025-03-01T12:00", outcome="failed", status_code=500, **_UNKNOWN)
    await attempt("2025-03-01T12:00", outcome="failed", status_code=500, **_UNKNOWN)
    await attempt("2025-03-01T12:00", outcome="unknown", status_code=None, **_UNKNOWN)
    await attempt("2025-03-01T00:00", outcome="succeeded", **_UNKNOWN)
    await attempt("2025-03-01T23:59:59.999999", outcome="aborted", **_UNKNOWN)
    await attempt("2025-03-01T12:00", outcome="failed", input_tokens=7, **held)
    await attempt("2025-03-01T12:00", outcome="failed", model_sent="small", **_UNKNOWN)
    await attempt("2025-03-01T12:00", outcome="failed", provider="other", **_UNKNOWN)
    await attempt("2025-02-28T23:59:59.999999", outcome="failed", **_UNKNOWN)
    await attempt("2025-03-02T00:00", outcome="failed", **_UNKNOWN)
    await attempt(
        "2025-03-01T12:00", model_served="large-2025", input_tokens=100, cache_read_tokens=20,
        cache_write_5m_tokens=3, cache_write_1h_tokens=4, output_tokens=50, reasoning_tokens=6,
    )  # fmt: skip
    await attempt("2025-03-01T12:00", model_served="large-2025", input_tokens=1, **held)
    return scratch


async def test_unknown_spend_is_counted_by_day_provider_and_model(books: Scratch) -> None:
    spends = await unknown_spend(books.settings, _DAYS)
    assert [(s.day, s.provider, s.model) for s in spends] == [
        (_DAY, "fake", "large"),
        (_DAY, "fake", "small"),
        (_DAY, "other", "large"),
    ]
    large = spends[0]
    assert large.attempts == {"failed": 3, "unknown": 1, "succeeded": 1, "aborted": 1}
    assert large.without_usage == {"failed": 2, "unknown": 1, "succeeded": 1, "aborted": 1}
    assert large.statuses == {500: 2, None: 1, 200: 3}


async def test_several_days_are_several_rows(books: Scratch) -> None:
    spends = await unknown_spend(books.settings, Days(date(2025, 2, 28), date(2025, 3, 2)))
    assert [(s.day.day, sum(s.attempts.values())) for s in spends if s.model == "large"] == [
        (28, 1), (1, 6), (1, 1), (2, 1),
    ]  # fmt: skip


async def test_our_totals_by_the_names_of_the_answers(books: Scratch) -> None:
    ours = await our_totals(books.settings, "fake", _DAYS, by_served=True)
    assert ours.totals[_DAY, "large-2025"] == {
        Measure.REQUESTS: 2,
        Measure.INPUT_TOKENS: 128,
        Measure.UNCACHED_INPUT_TOKENS: 101,
        Measure.CACHED_TOKENS: 20,
        Measure.CACHE_WRITE_TOKENS: 7,
        Measure.OUTPUT_TOKENS: 56,
        Measure.COST_USD: 0,
    }
    assert ours.uncharged == {(_DAY, "large-2025"): 2, (_DAY, "large"): 1}
    assert ours.without_usage == {(_DAY, "large"): 5, (_DAY, "small"): 1}
    assert (_DAY, "small") not in ours.totals


async def test_our_totals_by_the_names_of_the_routes(books: Scratch) -> None:
    ours = await our_totals(books.settings, "fake", _DAYS, by_served=False)
    assert ours.totals[_DAY, "large"][Measure.REQUESTS] == 3


async def test_our_costs_are_the_charges_to_the_last_digit(books: Scratch) -> None:
    await books.falsify(
        "UPDATE inference_record SET started_at = '2025-03-01T12:00Z'"
        " WHERE inference_id IN ('a-2', 'b-1')"
    )
    ours = await our_totals(books.settings, "fake", _DAYS, by_served=False)
    assert ours.totals[_DAY, "small"][Measure.COST_USD] == Decimal("0.000000825")
    # 21 tokens × 3.14159265358979323846264338327950288419716939937510 ÷ 10⁶
    assert ours.totals[_DAY, "large"][Measure.COST_USD] == Decimal(
        "0.0000659734457253856580077155110488695605681405573868771"
    )
