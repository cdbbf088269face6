"""Counts unknown spend by day, provider and model."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from quotagate import stores
from quotagate.days import Days
from quotagate.statements import statement
from quotagate.stores import StoreSettings

_COUNTED = statement(Path(__file__).with_name("sql"), "unknown_spend")


@dataclass(frozen=True, slots=True)
class Spend:
    """The attempts of one day at one model of a provider that failed or told no usage."""

    day: date
    """UTC, by the edge's clock when the attempt began."""
    provider: str
    model: str
    attempts: Counter[str] = field(default_factory=Counter)
    """By outcome: `failed`, `aborted`, `unknown`, and `succeeded` where only usage is missing."""
    statuses: Counter[int | None] = field(default_factory=Counter)
    """By the provider's HTTP status; None: no response arrived."""
    without_usage: Counter[str] = field(default_factory=Counter)
    """Those whose spend is unknown, by outcome; the others failed and told their usage."""


async def unknown_spend(settings: StoreSettings, days: Days) -> list[Spend]:
    """Return the unknown spend of these days, in their order.

    Raises:
        CannotTellError: the database doesn't answer.

    """
    spends: dict[tuple[date, str, str], Spend] = {}
    async with stores.database(settings) as engine, engine.connect() as connection:
        rows = await connection.execute(_COUNTED, {"since": days.since, "until": days.until})
        for row in rows:
            key = (row.day, row.provider, row.model)
            spend = spends.setdefault(key, Spend(*key))
            spend.attempts[row.outcome] += row.attempts
            spend.statuses[row.status_code] += row.attempts
            if row.without_usage:
                spend.without_usage[row.outcome] += row.attempts
    return list(spends.values())
