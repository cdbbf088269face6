"""Prices: nothing is free by accident, nothing takes effect in the past."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from contracts.usage import UsdPerMillion
from control_plane.domain.errors import InvalidError
from control_plane.domain.prices import AskedPrice, complete, effective_from

NOW = datetime(2030, 1, 31, tzinfo=UTC)
ONE, FOUR, NOTHING = Decimal(1), Decimal(4), Decimal(0)


def test_classes_that_are_not_named_cost_what_input_and_output_cost() -> None:
    assert complete(AskedPrice(input=ONE, output=FOUR)) == UsdPerMillion(
        input=ONE,
        cache_read=ONE,
        cache_write_5m=ONE,
        cache_write_1h=ONE,
        output=FOUR,
        reasoning=FOUR,
    )


@pytest.mark.parametrize("name", ["cache_read", "cache_write_5m", "cache_write_1h", "reasoning"])
def test_a_class_that_is_named_free_is_free(name: str) -> None:
    completed = complete(AskedPrice(input=ONE, output=FOUR, **{name: NOTHING}))
    assert getattr(completed, name) == NOTHING
    others = {"input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning"}
    assert all(getattr(completed, other) > 0 for other in others - {name})


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(NOW, id="now"),
        pytest.param(NOW - timedelta(minutes=1), id="a minute ago"),
        pytest.param(NOW + timedelta(days=3_660), id="in ten years"),
    ],
)
def test_when_a_price_may_take_effect(asked: datetime) -> None:
    assert effective_from(asked, NOW) == asked


def test_a_price_takes_effect_now_unless_asked_otherwise() -> None:
    assert effective_from(None, NOW) == NOW


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(NOW - timedelta(minutes=1, microseconds=1), id="more than a minute ago"),
        pytest.param(NOW + timedelta(days=3_660, microseconds=1), id="after more than ten years"),
    ],
)
def test_when_a_price_may_not_take_effect(asked: datetime) -> None:
    with pytest.raises(InvalidError) as caught:
        effective_from(asked, NOW)
    assert caught.value.field == "effective_from"
