"""Sliding windows as a story: who counts, who waits, and which window is told."""

import pytest
from msgspec.structs import replace

from admission.domain.windows import decider, entered, shadowed, told, use_of
from contracts.limits import LimitReason, LimitScope, Refusal
from contracts.windows import Window, WindowUse

NOW_US = 1_788_436_800_000_000
MINUTE_US = 60_000_000
DAY_US = 86_400_000_000
TWO = Window(group="Chat", label="Minute", limit=2, length_us=MINUTE_US)
THREE = Window(group="Chat", label="Day", limit=3, length_us=DAY_US)


@pytest.mark.parametrize(
    ("ages_us", "use"),
    [
        pytest.param((), WindowUse(used=0), id="nobody came"),
        pytest.param((5,), WindowUse(used=1), id="room for one"),
        pytest.param((MINUTE_US, 5), WindowUse(used=1), id="one left this very microsecond"),
        pytest.param(
            (MINUTE_US - 1, 5),
            WindowUse(used=2, admits_at_us=NOW_US + 1, empty_at_us=NOW_US + MINUTE_US - 5),
            id="one leaves in a microsecond",
        ),
        pytest.param(
            (50, 40, 30, 20),
            WindowUse(
                used=4, admits_at_us=NOW_US + MINUTE_US - 30, empty_at_us=NOW_US + MINUTE_US - 20
            ),
            id="the limit was lowered: three must leave",
        ),
        pytest.param((-5, -MINUTE_US - 1), WindowUse(used=1), id="a clock stepped back"),
    ],
)
def test_use(ages_us: tuple[int, ...], use: WindowUse) -> None:
    assert use_of(TWO, tuple(NOW_US - age_us for age_us in ages_us), NOW_US) == use


def test_all_are_entered_or_none() -> None:
    one, full = (NOW_US - 1,), (NOW_US - 2, NOW_US - 1)
    assert entered((TWO, THREE), (one, full), NOW_US) == ((*one, NOW_US), (*full, NOW_US))
    assert entered((TWO, THREE), (full, one), NOW_US) is None


def test_what_would_refuse_in_shadow_mode_is_not_entered() -> None:
    full = (NOW_US - 2, NOW_US - 1)
    shadow = replace(TWO, shadow=True)
    assert entered((shadow, THREE), (full, full), NOW_US) == (full, (*full, NOW_US))
    use = use_of(shadow, full, NOW_US)
    assert shadowed((shadow,), (use,))
    assert not shadowed((TWO,), (use,))
    assert decider((shadow,), (use,)) is None


def test_the_longest_wait_is_told_of_equal_ones_the_first() -> None:
    soon, late = (
        WindowUse(used=9, admits_at_us=NOW_US + wait_us, empty_at_us=NOW_US + 7)
        for wait_us in (1, 5)
    )
    refusal = Refusal(
        reason=LimitReason.ENDPOINT,
        scope=LimitScope.KEY,
        limit=3,
        used=9,
        resets_at_us=NOW_US + 7,
        window="Chat-Day",
    )
    assert told((TWO, THREE), (soon, late), LimitScope.KEY, NOW_US) == (refusal, 5)
    assert decider((TWO, THREE), (soon, soon)) == 0
    assert told((TWO,), (WindowUse(used=1),), LimitScope.KEY, NOW_US) is None
