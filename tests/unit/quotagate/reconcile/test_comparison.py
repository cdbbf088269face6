"""What differs, both ways, and how much may."""

from datetime import date
from decimal import Decimal

import pytest

from quotagate.reconcile import Measure, Tolerance, compare

DAY, NEXT = date(2026, 11, 29), date(2026, 11, 30)
REQUESTS, COST = Measure.REQUESTS, Measure.COST_USD


def _totals(requests: str, cost: str = "0") -> dict[Measure, Decimal]:
    return {REQUESTS: Decimal(requests), COST: Decimal(cost)}


def test_equal_sides_differ_in_nothing() -> None:
    side = {(DAY, "a"): _totals("3", "0.10"), (NEXT, "a"): _totals("4", "1")}
    same = {(DAY, "a"): _totals("3", "0.1"), (NEXT, "a"): _totals("4", "1.000")}
    comparison = compare(side, same, (REQUESTS, COST), Tolerance())
    assert comparison.differences == []
    assert comparison.compared == 2
    assert comparison.sums == {
        REQUESTS: (Decimal(7), Decimal(7)),
        COST: (Decimal("1.1"), Decimal("1.1")),
    }


def test_differences_are_told_both_ways_and_by_day_and_model() -> None:
    ours = {(DAY, "a"): _totals("3"), (DAY, "ours"): _totals("1"), (NEXT, "a"): _totals("5")}
    theirs = {(DAY, "a"): _totals("4"), (DAY, "theirs"): _totals("2"), (NEXT, "a"): _totals("4")}
    differences = compare(ours, theirs, (REQUESTS,), Tolerance()).differences
    assert [(d.day, d.model, d.apart, d.only) for d in differences] == [
        (DAY, "a", Decimal(1), None),
        (DAY, "ours", Decimal(-1), "ours"),
        (DAY, "theirs", Decimal(2), "theirs"),
        (NEXT, "a", Decimal(-1), None),
    ]


def test_only_what_the_provider_tells_is_compared() -> None:
    ours, theirs = {(DAY, "a"): _totals("3", "9")}, {(DAY, "a"): {REQUESTS: Decimal(3)}}
    assert compare(ours, theirs, (REQUESTS,), Tolerance()).differences == []


TOLERANCES = [
    pytest.param("100", "101", "0", False, id="zero tolerates nothing"),
    pytest.param("100", "101", "1", True, id="a percent of the larger"),
    pytest.param("100", "102", "1", False, id="more than a percent"),
    pytest.param("0", "1", "99", False, id="nothing is never nearly something"),
    pytest.param("3", "1", "66.666666666666666667", True, id="by a digit"),
    pytest.param("3", "1", "66.666666666666666666", False, id="not by a digit"),
]


@pytest.mark.parametrize(("ours", "theirs", "percent", "allowed"), TOLERANCES)
def test_a_tolerance_in_percent(ours: str, theirs: str, percent: str, allowed: bool) -> None:
    tolerance = Tolerance(percent=Decimal(percent))
    assert tolerance.allows(REQUESTS, Decimal(ours), Decimal(theirs)) == allowed
    assert tolerance.allows(REQUESTS, Decimal(theirs), Decimal(ours)) == allowed


def test_a_tolerance_in_usd_is_for_costs_alone() -> None:
    tolerance = Tolerance(usd=Decimal("0.01"))
    assert tolerance.allows(COST, Decimal("1.00"), Decimal("1.01"))
    assert not tolerance.allows(COST, Decimal("1.00"), Decimal("1.0100000001"))
    assert not tolerance.allows(REQUESTS, Decimal(0), Decimal("0.01"))
