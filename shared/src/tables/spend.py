"""What was spent in a calendar day or month, and which thresholds of its limit were crossed."""

from datetime import datetime
from decimal import Decimal

from sqlalchemy import BigInteger, CheckConstraint, Index, Integer, UniqueConstraint, func
from sqlmodel import Field

from tables.base import ID, USD, Base, amount_check

WHOLE_TEAM = ""
"""Stands for an API key's id where all keys of the team are meant."""


class Spend(Base, table=True):
    """The charges of a period, summed up as of a version of the account.

    Kept only for teams whose tier or key has a limit of spend. A missing row is no zero: the
    database's function `spend_settled` sums up what is missing. So rows of periods long over go.
    """

    __tablename__ = "spend"
    __table_args__ = (
        amount_check("amount_usd", ">= 0"),
        CheckConstraint("account_version >= 0", name="account_version"),
        CheckConstraint("ends_at > starts_at", name="ends_at"),
        Index(None, "ends_at"),
    )

    team_id: str = Field(primary_key=True, sa_type=ID, foreign_key="account.team_id")
    api_key_id: str = Field(primary_key=True, sa_type=ID)
    """`WHOLE_TEAM`, or one of its keys."""
    starts_at: datetime = Field(primary_key=True)
    """A charge belongs to the period in which its attempt ended, by the edge's clock."""
    ends_at: datetime = Field(primary_key=True)
    amount_usd: Decimal = Field(sa_type=USD)
    account_version: int = Field(sa_type=BigInteger)
    """All charges of this version and before are in the amount."""


class SpendThreshold(Base, table=True):
    """A threshold that was crossed: one row a period, limit and threshold. Written once."""

    __tablename__ = "spend_threshold"
    __table_args__ = (
        UniqueConstraint(
            "team_id",
            "api_key_id",
            "period",
            "starts_at",
            "ends_at",
            "limit_usd",
            "threshold_percent",
            name="spend_threshold_once_key",
        ),
        CheckConstraint("period IN ('day', 'month')", name="period"),
        CheckConstraint("mode IN ('hard', 'soft')", name="mode"),
        amount_check("limit_usd", "> 0"),
        amount_check("spent_usd", "> 0"),
        CheckConstraint("threshold_percent > 0", name="threshold_percent"),
        Index(None, "team_id", "crossed_at"),
    )

    message_id: str = Field(primary_key=True, sa_type=ID)
    """Of its event in the outbox and of its webhook; the same whoever finds it crossed."""
    team_id: str = Field(sa_type=ID, foreign_key="account.team_id")
    api_key_id: str = Field(sa_type=ID)
    period: str = Field(sa_type=ID)
    starts_at: datetime
    ends_at: datetime
    limit_usd: Decimal = Field(sa_type=USD)
    mode: str = Field(sa_type=ID)
    threshold_percent: int = Field(sa_type=Integer)
    spent_usd: Decimal = Field(sa_type=USD)
    """All that was settled of the period by then."""
    crossed_at: datetime = Field(
        default=None, sa_column_kwargs={"server_default": func.clock_timestamp()}
    )
    """Database clock."""
