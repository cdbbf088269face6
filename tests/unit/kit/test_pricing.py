"""What usage costs, to the last digit."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.usage import Usage, UsdPerMillion
from kit.money import InexactAmountError, ceil_nano_usd
from kit.pricing import usage_cost_usd

CLASSES = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")
FIXTURE = UsdPerMillion(
    input=Decimal(1),
    cache_read=Decimal("0.10"),
    cache_write_5m=Decimal("1.25"),
    cache_write_1h=Decimal(2),
    output=Decimal(4),
    reasoning=Decimal(4),
)


@pytest.mark.parametrize(
    ("usage", "cost_usd"),
    [
        pytest.param(Usage(), "0", id="no tokens"),
        pytest.param(Usage(output=1000), "0.004", id="output 1,000 with reasoning inside"),
        pytest.param(Usage(output=136), "0.000544", id="output 136 with reasoning inside"),
        pytest.param(Usage(input=2000, cache_read=8000), "0.0028", id="10,000, of it 8,000 cached"),
        pytest.param(Usage(input=100, cache_read=50, output=40), "0.000265", id="start and delta"),
        pytest.param(Usage(cache_write_5m=1000), "0.00125", id="a cache write of 5 minutes"),
        pytest.param(Usage(cache_write_1h=1000), "0.002", id="a cache write of 1 hour"),
        pytest.param(Usage(output=10, reasoning=5), "0.00006", id="reasoning outside output"),
        pytest.param(Usage(input=10**9), "1000", id="the largest usage that is charged"),
    ],
)
def test_cost(usage: Usage, cost_usd: str) -> None:
    assert usage_cost_usd(usage, FIXTURE) == Decimal(cost_usd)


def _one_dollar_but(**usd: str) -> UsdPerMillion:
    changed = {name: Decimal(amount) for name, amount in usd.items()}
    return UsdPerMillion(**(dict.fromkeys(CLASSES, Decimal(1)) | changed))


def test_a_price_below_a_nano_usd_a_token_is_exact() -> None:
    price = UsdPerMillion(
        **{**dict.fromkeys(CLASSES, Decimal(0)), "input": Decimal("0.0000000001")}
    )
    assert usage_cost_usd(Usage(input=3), price) == Decimal("3E-16")


def test_an_amount_that_would_lose_a_digit_is_an_error() -> None:
    price = _one_dollar_but(output="1E-1001")
    with pytest.raises(InexactAmountError):
        usage_cost_usd(Usage(input=1, output=1), price)


tokens = st.integers(0, 10**9)
prices = st.decimals(0, 10**6, allow_nan=False, allow_infinity=False, places=12)
usages = st.builds(Usage, **dict.fromkeys(CLASSES, tokens))
usd_per_million = st.builds(UsdPerMillion, **dict.fromkeys(CLASSES, prices))


@given(usages, usd_per_million)
def test_the_cost_is_the_sum_over_the_classes_in_integers(
    usage: Usage, price: UsdPerMillion
) -> None:
    # The prices have twelve places, so this sum is exact integer arithmetic in 10⁻¹⁸ USD.
    expected = sum(getattr(usage, name) * int(getattr(price, name).scaleb(12)) for name in CLASSES)
    assert int(usage_cost_usd(usage, price).scaleb(18)) == expected
    assert ceil_nano_usd(usage_cost_usd(usage, price)) == -(-expected // 10**9)


@given(st.lists(usages, max_size=4), usd_per_million)
def test_pricing_twice_gives_the_same(many: list[Usage], price: UsdPerMillion) -> None:
    assert [usage_cost_usd(u, price) for u in many] == [usage_cost_usd(u, price) for u in many]
