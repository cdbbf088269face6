"""What the database says of a team, each with the version that fences it in Redis."""

from decimal import Decimal

import msgspec


class TeamTier(msgspec.Struct, frozen=True):
    """A team's tier, at the team's tier version."""

    tier_id: str
    version: int


class TeamBalance(msgspec.Struct, frozen=True):
    """A team's settled balance, at the account's version."""

    balance_usd: Decimal
    version: int


class PeriodSpend(msgspec.Struct, frozen=True):
    """What was spent in a period, settled and not yet, at the account's version."""

    settled_usd: Decimal
    pending_usd: Decimal
    version: int
