"""Spend limits: USD of a calendar day or month, of a team or of one of its API keys."""

from decimal import Decimal
from enum import StrEnum
from typing import Annotated

import msgspec

from contracts.contract import Message

SPEND_CEILING_NANO_USD = 10**18
"""A billion USD, above every limit: counted spend grows no further from here."""

_CEILING_USD = SPEND_CEILING_NANO_USD * Decimal("1e-9")

Percent = Annotated[int, msgspec.Meta(ge=1, le=1_000)]


class SpendPeriod(StrEnum):
    """In the tier's time zone."""

    DAY = "day"
    MONTH = "month"


class SpendScope(StrEnum):
    """Whose spend is limited: all of the team's together, or each of its keys' by itself."""

    TEAM = "team"
    KEY = "key"


class SpendMode(StrEnum):
    """What a limit does that is reached. Either way its thresholds are told."""

    HARD = "hard"
    """It refuses until the period ends."""
    SOFT = "soft"
    """It refuses nobody, as a limit in shadow mode."""


class SpendLimit(Message, frozen=True, kw_only=True):
    """How much may be spent in a period: refused once so much is spent.

    What a call costs is known afterwards, so the call that reaches the limit may go beyond it.
    """

    period: SpendPeriod
    scope: SpendScope = SpendScope.TEAM
    limit_usd: Decimal | None = None
    """At most nine decimals. 0 blocks; None doesn't limit."""
    mode: SpendMode = SpendMode.HARD
    thresholds: tuple[Percent, ...] = (50, 80, 95, 100)
    """Percent of the limit at which an event tells that so much is spent, once a period."""

    def __post_init__(self) -> None:
        """See that the limit is an amount that spend can be compared with."""
        limit_usd = self.limit_usd
        if limit_usd is not None and not (limit_usd.is_finite() and 0 <= limit_usd < _CEILING_USD):
            raise ValueError(f"`limit_usd` must be at least 0 and below {_CEILING_USD:f}")
