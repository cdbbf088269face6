"""Which price version is pinned."""

from decimal import Decimal

import msgspec
import pytest

from admission.domain.prices import PriceBook, without_snapshot
from contracts.admission import Deployment
from contracts.usage import Price, UsdPerMillion

_USD = UsdPerMillion(
    input=Decimal(1),
    cache_read=Decimal(1),
    cache_write_5m=Decimal(1),
    cache_write_1h=Decimal(1),
    output=Decimal(1),
    reasoning=Decimal(1),
)


def _price(
    price_id: str, model: str = "gpt-4o", *, provider: str = "openai", effective_from_us: int = 0
) -> Price:
    return Price(
        price_id=price_id,
        provider=provider,
        model=model,
        usd_per_million=_USD,
        effective_from_us=effective_from_us,
    )


def _impossible(price_id: str, model: str, effective_from_us: int = 0) -> Price:
    price = _price(price_id, model, effective_from_us=effective_from_us)
    dear = msgspec.structs.replace(_USD, output=Decimal(1_000_001))
    return msgspec.structs.replace(price, usd_per_million=dear)


_BOOK = PriceBook.of(
    [
        _price("second", effective_from_us=200),
        _price("third", effective_from_us=300),
        _price("first", effective_from_us=100),
        _price("elsewhere", provider="azure"),
        _price("exactly", "gpt-4o-2024-05-13"),
        _price("to come", "gpt-4o-2024-11-20", effective_from_us=900),
        _price("haiku", "claude-3-haiku"),
        _price("before", "slipped", effective_from_us=100),
        _impossible("slip", "slipped", 200),
        _price("after", "slipped", effective_from_us=300),
        _impossible("dated slip", "slipped-20240101"),
    ]
)


@pytest.mark.parametrize(
    ("model", "now_us", "price_id"),
    [
        pytest.param("gpt-4o", 99, None, id="before the first version"),
        pytest.param("gpt-4o", 100, "first", id="from the very microsecond"),
        pytest.param("gpt-4o", 199, "first", id="until the next one"),
        pytest.param("gpt-4o", 250, "second", id="between versions"),
        pytest.param("gpt-4o", 10**18, "third", id="the latest has no end"),
        pytest.param("gpt-4o-2024-05-13", 250, "exactly", id="a snapshot with its own price"),
        pytest.param("gpt-4o-2024-08-06", 250, "second", id="a dated snapshot"),
        pytest.param("gpt-4o-20240806", 250, "second", id="a snapshot dated in one go"),
        pytest.param("gpt-4o-latest", 250, "second", id="the latest snapshot"),
        pytest.param("gpt-4o-2024-11-20", 250, "second", id="until its own price is in effect"),
        pytest.param("gpt-4o-2024-11-20", 900, "to come", id="once its own price is in effect"),
        pytest.param("slipped", 199, "before", id="until one that can't be"),
        pytest.param("slipped", 200, None, id="one that can't be, and not the one before it"),
        pytest.param("slipped", 300, "after", id="after one that can't be"),
        pytest.param("slipped-20240101", 100, None, id="a snapshot's that can't be"),
        pytest.param("claude-3-haiku-20240307", 250, "haiku", id="another maker's dates"),
        pytest.param("gpt-4o-mini", 250, None, id="a longer name is another model"),
        pytest.param("gpt-4o-2024-08", 250, None, id="half a date"),
        pytest.param("gpt-4o-2024-08-06-x", 250, None, id="more behind the date"),
        pytest.param("gpt-4o-2024-08-06\n", 250, None, id="a line break behind the date"),
        pytest.param("-latest", 250, None, id="only a suffix"),
        pytest.param("unheard-of", 250, None, id="unknown"),
    ],
)
def test_the_version_in_effect_is_pinned(model: str, now_us: int, price_id: str | None) -> None:
    pinned = _BOOK.pin(Deployment(provider="openai", model=model), now_us)
    assert (None if pinned is None else pinned.price_id) == price_id


def test_a_price_is_one_providers_alone() -> None:
    pinned = _BOOK.pin(Deployment(provider="azure", model="gpt-4o"), 250)
    assert pinned is not None
    assert pinned.price_id == "elsewhere"
    assert _BOOK.pin(Deployment(provider="nobody", model="gpt-4o"), 250) is None


def test_a_name_without_a_snapshot_is_its_own() -> None:
    assert without_snapshot("gpt-4o") == "gpt-4o"
