"""What waits in the database."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncEngine

from settlement.store.failures import named_failures
from settlement.store.statements import statement

_MEASURE = statement("measure")


@dataclass(frozen=True, slots=True)
class Waiting:
    """Counts of records and accounts; `oldest_pending_at` is the edge's clock, None: none waits."""

    pending: int
    oldest_pending_at: datetime | None
    held: int
    negative_balances: int


async def waiting(engine: AsyncEngine) -> Waiting:
    """Count what waits.

    Raises:
        StoreUnavailableError: no answer.

    """
    with named_failures():
        async with engine.connect() as connection:
            row = (await connection.execute(_MEASURE)).one()
    return Waiting(row.pending, row.oldest_pending_at, row.held, row.negative_balances)
