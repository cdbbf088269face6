"""The rough debit: exact, rounded up once, never below the charge."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission.domain.money import rough_debit_nano_usd
from contracts.usage import Usage, UsdPerMillion

CLASSES = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")


def price(**usd_per_million: str) -> UsdPerMillion:
    return UsdPerMillion(**{name: Decimal(usd_per_million.get(name, "0")) for name in CLASSES})


FIELD = price(input="1", cache_read="0.10", cache_write_5m="1.25", output="4")


@pytest.mark.parametrize(
    ("usage", "usd_per_million", "expected_nano_usd"),
    [
        pytest.param(Usage(), FIELD, 0, id="no usage"),
        pytest.param(Usage(output=1_000), FIELD, 4_000_000, id="1,000 output at 4 USD"),
        pytest.param(
            Usage(input=2_000, cache_read=8_000), FIELD, 2_800_000, id="cached input is cheaper"
        ),
        pytest.param(
            Usage(cache_write_5m=10, cache_write_1h=10),
            price(cache_write_5m="1.25", cache_write_1h="2"),
            32_500,
            id="each cache write has its price",
        ),
        pytest.param(
            Usage(output=10, reasoning=5),
            price(output="4", reasoning="8"),
            80_000,
            id="reasoning outside output",
        ),
        pytest.param(Usage(input=1), price(input="0.0001"), 1, id="a fraction rounds up"),
        pytest.param(Usage(input=1), price(input="0.001"), 1, id="a whole nano stays"),
        pytest.param(
            Usage(input=1, output=1),
            price(input="0.0005", output="0.0005"),
            1,
            id="the sum is rounded, not each class",
        ),
        pytest.param(
            Usage(input=10**10),
            price(input="123456789.000000000000000000000000000000000000000001"),
            1_234_567_890_000_000_000_001,
            id="more digits than a double or a default context holds",
        ),
    ],
)
def test_table(usage: Usage, usd_per_million: UsdPerMillion, expected_nano_usd: int) -> None:
    assert rough_debit_nano_usd(usage, usd_per_million) == expected_nano_usd


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 10**9), min_size=6, max_size=6),
    st.lists(
        st.decimals(min_value=0, max_value=10**6, allow_nan=False, allow_infinity=False),
        min_size=6,
        max_size=6,
    ),
)
def test_never_below_the_price_and_less_than_a_nano_above(
    tokens: list[int], prices: list[Decimal]
) -> None:
    usage = Usage(**dict(zip(CLASSES, tokens, strict=True)))
    usd_per_million = UsdPerMillion(**dict(zip(CLASSES, prices, strict=True)))
    exact_nano = sum(
        (Fraction(count) * Fraction(usd) * 1000 for count, usd in zip(tokens, prices, strict=True)),
        Fraction(0),
    )
    assert 0 <= rough_debit_nano_usd(usage, usd_per_million) - exact_nano < 1
