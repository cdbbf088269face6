"""Our side: what was recorded and charged."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from quotagate import stores
from quotagate.days import Days
from quotagate.reconcile.measures import Key, Measure, Totals
from quotagate.statements import statement
from quotagate.stores import StoreSettings

_OURS = statement(Path(__file__).with_name("sql"), "ours")


@dataclass(frozen=True, slots=True)
class Ours:
    """Totals by day and model, and what may explain a difference."""

    totals: Mapping[Key, Totals]
    without_usage: Mapping[Key, int]
    """Attempts that the provider may have counted, and told us no usage of."""
    uncharged: Mapping[Key, int]
    """Records with usage that have no charge yet: they wait, or a person must look."""


async def our_totals(
    settings: StoreSettings, provider: str, days: Days, *, by_served: bool
) -> Ours:
    """Return what we have of a provider for these days.

    `by_served`: models are called as the provider calls them in its answers, with the date of a
    snapshot say; otherwise as the routes name them.

    Raises:
        CannotTellError: the database doesn't answer.

    """
    parameters = {
        "provider": provider,
        "since": days.since,
        "until": days.until,
        "by_served": by_served,
    }
    async with stores.database(settings) as engine, engine.connect() as connection:
        rows = (await connection.execute(_OURS, parameters)).mappings().all()
    keys = [(row["day"], row["model"]) for row in rows]
    return Ours(
        totals={
            key: {measure: Decimal(row[measure.value]) for measure in Measure}
            for key, row in zip(keys, rows, strict=True)
            if any(row[measure.value] for measure in Measure)
        },
        without_usage={
            key: row["without_usage"]
            for key, row in zip(keys, rows, strict=True)
            if row["without_usage"]
        },
        uncharged={
            key: row["uncharged"] for key, row in zip(keys, rows, strict=True) if row["uncharged"]
        },
    )
