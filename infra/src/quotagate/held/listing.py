"""Lists what is held, and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from quotagate import stores
from quotagate.statements import statement
from quotagate.stores import StoreSettings

_SQL = Path(__file__).with_name("sql")
_COUNTS = statement(_SQL, "counts")
_RECORDS = statement(_SQL, "records")


@dataclass(frozen=True, slots=True)
class Held:
    """One held record."""

    record_id: int
    team_id: str
    inference_id: str
    attempt_no: int
    reason: str
    provider: str
    model: str | None
    """The model that was sent; None: the record doesn't say."""
    tokens: int
    """Of all classes."""
    price_id: str | None
    """The price that the record names, there or not; None: it names none."""
    price_then: str | None
    """The price of its model that was in effect when it started; None: there was none."""
    started_at: datetime
    """The edge's clock."""


@dataclass(frozen=True, slots=True)
class Holding:
    """All that is held."""

    counts: Mapping[str, int]
    """By reason."""
    records: list[Held]
    """The oldest of them."""


async def holding(
    settings: StoreSettings, *, team_id: str | None, reason: str | None, listed: int
) -> Holding:
    """Return what is held of a team and for a reason, None meaning any; at most `listed` records.

    Raises:
        CannotTellError: the database doesn't answer or refuses.

    """
    chosen = {"team_id": team_id, "reason": reason}
    async with stores.database(settings) as engine, stores.snapshot(engine) as snapshot:
        counts = {row.reason: row.records for row in await snapshot.execute(_COUNTS, chosen)}
        rows = await snapshot.execute(_RECORDS, chosen | {"listed": listed})
        return Holding(
            counts,
            [Held(**row | {"tokens": int(row["tokens"])}) for row in map(dict, rows.mappings())],
        )
