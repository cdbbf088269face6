"""What a price says about the token classes it doesn't name, and when it may take effect."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from contracts.usage import UsdPerMillion
from control_plane.domain.errors import InvalidError

MAX_BACKDATING = timedelta(minutes=1)
MAX_PREDATING = timedelta(days=3_660)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedPrice:
    """USD per million tokens as somebody asked for it; None: that class wasn't named."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write_5m: Decimal | None = None
    cache_write_1h: Decimal | None = None
    reasoning: Decimal | None = None


def complete(asked: AskedPrice) -> UsdPerMillion:
    """Return the price of every class: what isn't named is never free by accident.

    Cached input costs what input costs, and reasoning what output costs.
    """

    def named_or(named: Decimal | None, otherwise: Decimal) -> Decimal:
        return otherwise if named is None else named

    return UsdPerMillion(
        input=asked.input,
        cache_read=named_or(asked.cache_read, asked.input),
        cache_write_5m=named_or(asked.cache_write_5m, asked.input),
        cache_write_1h=named_or(asked.cache_write_1h, asked.input),
        output=asked.output,
        reasoning=named_or(asked.reasoning, asked.output),
    )


def effective_from(asked: datetime | None, now: datetime) -> datetime:
    """Return when a price takes effect; not asked for means now. Both are the database's clock.

    What was pinned stays pinned, so a price of the past could only rewrite what was decided by
    other prices; a minute is for clocks that differ.

    Raises:
        InvalidError: in the past, or so far ahead that it must be a mistake.

    """
    if asked is None:
        return now
    if asked < now - MAX_BACKDATING:
        raise InvalidError(
            "effective_from: must not be in the past; a price is never changed afterwards.",
            field="effective_from",
        )
    if asked > now + MAX_PREDATING:
        raise InvalidError(
            "effective_from: must be within the next ten years.", field="effective_from"
        )
    return asked
