"""Connections by address: too many are told, twice as many cut, and closed ones forgotten."""

from kit.connection_limits import Bound, ConnectionLimits, Excess


def named(peer: str) -> str | None:
    return None if peer == "proxy" else peer


def test_open_ones() -> None:
    limits = ConnectionLimits(2, 0, named)
    excesses = [limits.opened("a") for _ in range(3)]
    assert excesses == [None, None, Excess(Bound.OPEN, 2, 2, 1_000_000)]
    assert limits.opened("b") is None
    limits.closed("a")
    limits.closed("a")
    assert limits.opened("a") is None


def test_twice_as_many_are_cut() -> None:
    limits = ConnectionLimits(2, 0, named)
    cuts = []
    for _ in range(5):
        limits.opened("a")
        cuts.append(limits.must_cut("a"))
    assert cuts == [False, False, False, False, True]


def test_new_ones_by_the_second() -> None:
    limits = ConnectionLimits(0, 3, named)
    excesses = [limits.opened("a") for _ in range(4)]
    assert excesses[:3] == [None] * 3
    assert excesses[3] is not None
    assert (excesses[3].bound, excesses[3].limit) == (Bound.RATE, 3)
    assert 0 < excesses[3].wait_us <= 334_000
    assert not limits.must_cut("a")


def test_nothing_is_kept_of_those_that_closed() -> None:
    limits = ConnectionLimits(2, 0, named)
    for number in range(1_000):
        limits.opened(str(number))
        limits.closed(str(number))
    assert limits.open == 0
    assert limits.address_of("proxy") is None
