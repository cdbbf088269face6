"""What settling a team's pending records comes to: its charges, their sum, what must be held."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from contracts.usage import Usage, UsdPerMillion
from kit.money import InexactAmountError, exact_sum
from kit.pricing import usage_cost_usd
from settlement.domain.classification import HeldReason

Prices = Mapping[str, UsdPerMillion]
"""Price by the id that records pin. A missing one doesn't exist."""


@dataclass(frozen=True, slots=True)
class PendingRecord:
    """What settling needs to know of a record."""

    record_id: int
    team_id: str
    price_id: str | None
    usage: Usage
    key_id: str = ""
    ended_at_us: int = 0
    """By the edge's clock, unix microseconds: when its charge counts."""


@dataclass(frozen=True, slots=True)
class UsageCharge:
    """What one record costs, and by which price."""

    record_id: int
    price_id: str
    amount_usd: Decimal


@dataclass(frozen=True, slots=True)
class AccountBatch:
    """What one transaction does to one account. `total_usd`: the sum of the charges, maybe 0."""

    team_id: str
    charges: tuple[UsageCharge, ...]
    total_usd: Decimal
    held: Mapping[int, HeldReason]
    """By record id."""


def account_batches(records: Iterable[PendingRecord], prices: Prices) -> list[AccountBatch]:
    """Price the records and return one batch per team, in the order of the team ids."""
    by_team: dict[str, list[PendingRecord]] = {}
    for record in records:
        by_team.setdefault(record.team_id, []).append(record)
    return [_batch(team_id, by_team[team_id], prices) for team_id in sorted(by_team)]


def _batch(team_id: str, records: list[PendingRecord], prices: Prices) -> AccountBatch:
    charges: list[UsageCharge] = []
    held: dict[int, HeldReason] = {}
    total_usd = Decimal(0)
    for record in records:
        price = None if record.price_id is None else prices.get(record.price_id)
        if record.price_id is None or price is None:
            held[record.record_id] = HeldReason.MISSING_PRICE
            continue
        try:
            amount_usd = usage_cost_usd(record.usage, price)
            total_usd = exact_sum(total_usd, amount_usd)
        except InexactAmountError:
            held[record.record_id] = HeldReason.UNPRICEABLE
            continue
        charges.append(UsageCharge(record.record_id, record.price_id, amount_usd))
    return AccountBatch(team_id, tuple(charges), total_usd, held)
