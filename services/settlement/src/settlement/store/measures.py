"""What waits in the database, and whether its own constraints stand."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncEngine

from kit.errors import NotReadyError, UnsafeServerError
from settlement.errors import SettlementError
from settlement.store.failures import named_failures
from settlement.store.statements import statement

_MEASURE = statement("measure")
_UNIQUE = statement("unique_indexes")


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


async def check_unique(engine: AsyncEngine) -> None:
    """See that no record and no charge can be stored twice.

    Raises:
        NotReadyError: no answer.
        UnsafeServerError: an index is missing; has the database been migrated?

    """
    try:
        with named_failures():
            async with engine.connect() as connection:
                holds = (await connection.execute(_UNIQUE)).scalar_one()
    except SettlementError as error:
        raise NotReadyError(str(error)) from error
    if not holds:
        raise UnsafeServerError("postgres: a record could be charged twice; migrate the database")
