from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.money import (
    ceil_nano_usd,
    exact_sum,
    floor_nano_usd,
    format_usd,
    negated,
    tokens_cost_usd,
    usd_from_nano,
)

AMOUNTS = st.decimals(
    allow_nan=False, allow_infinity=False, places=30, min_value=-(10**12), max_value=10**12
)


@pytest.mark.parametrize(
    ("tokens", "usd_per_million", "expected"),
    [
        pytest.param(0, "4", "0", id="no tokens cost nothing"),
        pytest.param(1, "4", "0.000004", id="one token"),
        pytest.param(1000, "4", "0.004", id="a thousand output tokens at $4"),
        pytest.param(8000, "0.10", "0.0008", id="cached input"),
        pytest.param(
            3, "0.0000000000000000000001", "0.0000000000000000000000000003", id="unbounded digits"
        ),
        pytest.param(10**10, "0.15", "1500", id="ten billion tokens"),
    ],
)
def test_cost_of_tokens(tokens: int, usd_per_million: str, expected: str) -> None:
    assert tokens_cost_usd(tokens, Decimal(usd_per_million)) == Decimal(expected)


@pytest.mark.parametrize(
    ("amount_usd", "up", "down"),
    [
        pytest.param("0", 0, 0, id="zero"),
        pytest.param("0.000000001", 1, 1, id="exactly one nano"),
        pytest.param("0.0000000001", 1, 0, id="a tenth of a nano"),
        pytest.param("-0.0000000001", 0, -1, id="a tenth of a nano below zero"),
        pytest.param("-1.5", -1_500_000_000, -1_500_000_000, id="exact negative"),
        pytest.param("9.99999999999", 10_000_000_000, 9_999_999_999, id="just below ten dollars"),
    ],
)
def test_debits_round_up_and_balances_round_down(amount_usd: str, up: int, down: int) -> None:
    assert ceil_nano_usd(Decimal(amount_usd)) == up
    assert floor_nano_usd(Decimal(amount_usd)) == down


@given(AMOUNTS)
def test_rounding_is_within_one_nano(amount_usd: Decimal) -> None:
    assert (
        usd_from_nano(floor_nano_usd(amount_usd))
        <= amount_usd
        <= usd_from_nano(ceil_nano_usd(amount_usd))
    )
    assert ceil_nano_usd(amount_usd) - floor_nano_usd(amount_usd) in {0, 1}


@given(st.lists(AMOUNTS, max_size=20))
def test_a_sum_does_not_depend_on_order(amounts: list[Decimal]) -> None:
    assert exact_sum(*amounts) == exact_sum(*reversed(amounts))
    assert exact_sum(*amounts, *map(negated, amounts)) == 0


def test_a_million_tiny_amounts_lose_nothing() -> None:
    tiny = Decimal("0.0000000000000000000000000000000000001")
    assert exact_sum(*[tiny] * 1_000_000) == tiny * 1_000_000


@pytest.mark.parametrize(
    ("amount_usd", "text"),
    [
        ("0E-9", "0"),
        ("-0.00", "0"),
        ("1E+3", "1000"),
        ("10.50", "10.5"),
        ("1E-10", "0.0000000001"),
        ("-2.0", "-2"),
    ],
)
def test_amounts_are_written_plainly(amount_usd: str, text: str) -> None:
    assert format_usd(Decimal(amount_usd)) == text
