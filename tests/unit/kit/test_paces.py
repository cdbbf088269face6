"""So many in a burst, then one after the other; and no more memory than is allowed."""

import pytest

from kit import paces
from kit.paces import Paces

SECOND_US = 1_000_000


def test_a_burst_then_one_each_interval() -> None:
    three = Paces(3, 60)
    for used in (1, 2, 3):
        assert three.wait_us(three.debt_us("a", 0)) == 0
        three.count("a", 0)
        assert three.used(three.debt_us("a", 0)) == used
    assert three.wait_us(three.debt_us("a", 0)) == 20 * SECOND_US
    assert three.wait_us(three.debt_us("a", 20 * SECOND_US - 1)) == 1
    assert three.wait_us(three.debt_us("a", 20 * SECOND_US)) == 0
    assert three.debt_us("b", 0) == 0


def test_who_owes_nothing_is_forgotten() -> None:
    one = Paces(1, 60)
    one.count("a", 0)
    assert one
    assert one.debt_us("a", 60 * SECOND_US) == 0
    assert not one


def test_beyond_the_most_who_came_longest_ago_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paces, "_REMEMBERED", 2)
    one = Paces(1, 60)
    for who in ("a", "b", "a", "c"):
        one.count(who, 0)
    assert len(one) == 2
    assert [bool(one.debt_us(who, 0)) for who in ("a", "b", "c")] == [True, False, True]
