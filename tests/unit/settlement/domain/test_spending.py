"""Spend: whose limits a call meets, in which period it counts, which thresholds it reaches."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import pytest

from contracts.spend import SpendLimit, SpendMode, SpendPeriod, SpendScope
from settlement.domain.reconciling import CountedSpend, SettledSpend, Step, next_spend_step
from settlement.domain.spending import (
    Ended,
    Period,
    Spent,
    TeamLimits,
    crossings,
    current_periods,
    limits_by_period,
)

DAY = SpendLimit(period=SpendPeriod.DAY, limit_usd=Decimal(10))
KEY_DAY = SpendLimit(period=SpendPeriod.DAY, scope=SpendScope.KEY, limit_usd=Decimal(1))
KEY_MONTH = SpendLimit(period=SpendPeriod.MONTH, scope=SpendScope.KEY, limit_usd=Decimal(5))
OWN = SpendLimit(period=SpendPeriod.DAY, scope=SpendScope.KEY, limit_usd=Decimal(3))


def us(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * 1_000_000


NOON_US = us("2026-12-01T12:00:00Z")
TODAY = us("2026-12-01T00:00:00Z"), us("2026-12-02T00:00:00Z")
DECEMBER = us("2026-12-01T00:00:00Z"), us("2027-01-01T00:00:00Z")


def test_a_keys_own_limit_replaces_that_of_every_key_of_the_same_period() -> None:
    limits = TeamLimits("UTC", (DAY, KEY_DAY, KEY_MONTH), {"rich": (OWN,)})
    assert list(limits.met_by("poor")) == [DAY, KEY_DAY, KEY_MONTH]
    assert list(limits.met_by("rich")) == [DAY, KEY_MONTH, OWN]
    found, without = limits_by_period(
        {"t": limits}, [Ended("t", "rich", NOON_US), Ended("nobody", "k", NOON_US)]
    )
    assert found == {
        Period("t", None, *TODAY): DAY,
        Period("t", "rich", *DECEMBER): KEY_MONTH,
        Period("t", "rich", *TODAY): OWN,
    }
    assert without == []


def test_what_has_no_time_is_left_out_and_keeps_nobody_else_from_counting() -> None:
    teams = {"t": TeamLimits("UTC", (DAY,)), "mars": TeamLimits("Mars/Base", (DAY,))}
    lost = [Ended("mars", "k", NOON_US), Ended("t", "k", 10**25)]
    found, without = limits_by_period(teams, [*lost, Ended("t", "k", NOON_US)])
    assert found == {Period("t", None, *TODAY): DAY}
    assert without == lost


def test_current_periods_are_the_teams_and_its_keys() -> None:
    limits = TeamLimits("UTC", (DAY, KEY_DAY))
    whole = Period("t", None, *TODAY)
    assert set(current_periods("t", limits, [], NOON_US)) == {whole}
    assert set(current_periods("t", limits, ["k"], NOON_US)) == {whole, Period("t", "k", *TODAY)}


SPENT = Spent(Period("t", None, *TODAY), Decimal(8), 3, is_current=True)


@pytest.mark.parametrize(
    ("spent_usd", "percents"),
    [
        pytest.param("0", [], id="nothing"),
        pytest.param("4.999999999999999999999999999999999", [], id="just below, in many digits"),
        pytest.param("5", [50], id="just reached"),
        pytest.param("9.5", [50, 80, 95], id="several at once"),
        pytest.param("1000", [50, 80, 95, 100], id="far beyond"),
    ],
)
def test_which_thresholds_are_reached(spent_usd: str, percents: list[int]) -> None:
    spent = replace(SPENT, amount_usd=Decimal(spent_usd))
    assert [each.percent for each in crossings(spent, DAY)] == percents


def test_an_id_is_the_same_for_the_same_threshold_and_another_for_any_other() -> None:
    [first, second, *_] = crossings(SPENT, DAY)
    again = next(crossings(replace(SPENT, amount_usd=Decimal(9), version=4), DAY))
    written_otherwise = SpendLimit(period=SpendPeriod.DAY, limit_usd=Decimal("10.00"))
    others = [
        second,
        next(crossings(replace(SPENT, period=Period("t", "k", *TODAY)), DAY)),
        next(crossings(replace(SPENT, period=Period("u", None, *TODAY)), DAY)),
        next(crossings(replace(SPENT, period=Period("t", None, *DECEMBER)), DAY)),
        next(crossings(SPENT, SpendLimit(period=SpendPeriod.DAY, limit_usd=Decimal(11)))),
    ]
    assert again.message_id == first.message_id
    assert next(crossings(SPENT, written_otherwise)).message_id == first.message_id
    assert (
        next(
            crossings(
                SPENT,
                SpendLimit(period=SpendPeriod.DAY, limit_usd=Decimal(10), mode=SpendMode.SOFT),
            )
        ).message_id
        == first.message_id
    )
    assert len({each.message_id for each in [first, *others]}) == 1 + len(others)


@pytest.mark.parametrize(
    ("counted", "settled", "seen", "step"),
    [
        pytest.param((7, 2), (7, 2, False), None, Step.NOTHING, id="the same"),
        pytest.param((7, 2), (7, 3, False), None, Step.NOTHING, id="a credit between"),
        pytest.param((9, 2), (7, 2, True), (9, 2), Step.NOTHING, id="pending"),
        pytest.param((9, 2), (7, 2, False), None, Step.LOOK_AGAIN, id="the first look"),
        pytest.param((9, 2), (7, 2, False), (8, 2), Step.LOOK_AGAIN, id="it moved"),
        pytest.param((9, 2), (7, 2, False), (9, 2), Step.REPAIR, id="it stood still"),
        pytest.param((5, 2), (7, 3, False), (5, 2), Step.REPAIR, id="a refresh was lost"),
        pytest.param((7, 4), (7, 3, False), (7, 4), Step.AHEAD, id="a restored database"),
    ],
)
def test_what_reconciling_does_about_spend(
    counted: tuple[int, int],
    settled: tuple[int, int, bool],
    seen: tuple[int, int] | None,
    step: Step,
) -> None:
    before = None if seen is None else CountedSpend(*seen)
    assert next_spend_step(CountedSpend(*counted), SettledSpend(*settled), before) is step
