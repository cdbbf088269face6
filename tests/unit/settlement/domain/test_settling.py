"""What a batch of records comes to."""

from decimal import Decimal

import pytest

from contracts.usage import Usage, UsdPerMillion
from settlement.domain.classification import HeldReason
from settlement.domain.settling import PendingRecord, UsageCharge, account_batches

CLASSES = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")


def _price(usd: str) -> UsdPerMillion:
    return UsdPerMillion(**dict.fromkeys(CLASSES, Decimal(usd)))


PRICES = {"v1": _price("1"), "v2": _price("2"), "free": _price("0"), "tiny": _price("1E-1001")}


def _record(record_id: int, team_id: str = "a", price_id: str | None = "v1") -> PendingRecord:
    return PendingRecord(record_id, team_id, price_id, Usage(input=1_000_000))


def test_each_team_has_one_batch_in_id_order() -> None:
    batches = account_batches([_record(1, "b"), _record(2, "a"), _record(3, "b")], PRICES)
    assert [(batch.team_id, batch.total_usd) for batch in batches] == [
        ("a", Decimal(1)),
        ("b", Decimal(2)),
    ]
    assert [charge.record_id for charge in batches[1].charges] == [1, 3]


def test_each_record_is_charged_by_the_price_it_pinned() -> None:
    (batch,) = account_batches([_record(1, price_id="v1"), _record(2, price_id="v2")], PRICES)
    assert batch.charges == (
        UsageCharge(1, "v1", Decimal(1)),
        UsageCharge(2, "v2", Decimal(2)),
    )
    assert batch.total_usd == 3


def test_a_free_model_is_charged_zero() -> None:
    (batch,) = account_batches([_record(1, price_id="free")], PRICES)
    assert batch.charges == (UsageCharge(1, "free", Decimal(0)),)
    assert batch.total_usd == 0


@pytest.mark.parametrize(
    ("price_id", "reason"),
    [
        pytest.param("v3", HeldReason.MISSING_PRICE, id="a price that doesn't exist"),
        pytest.param(None, HeldReason.MISSING_PRICE, id="no price, released by mistake"),
        pytest.param("tiny", HeldReason.UNPRICEABLE, id="a sum with more than a thousand digits"),
    ],
)
def test_one_record_is_held_and_the_others_are_charged(
    price_id: str | None, reason: HeldReason
) -> None:
    (batch,) = account_batches([_record(1), _record(2, price_id=price_id), _record(3)], PRICES)
    assert [charge.record_id for charge in batch.charges] == [1, 3]
    assert dict(batch.held) == {2: reason}
    assert batch.total_usd == 2


def test_nothing_comes_to_nothing() -> None:
    assert account_batches([], PRICES) == []
