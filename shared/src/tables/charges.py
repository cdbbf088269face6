"""Usage charges: the exact price of one record."""

import uuid
from datetime import datetime
from decimal import Decimal

from sqlalchemy import BigInteger, CheckConstraint, ForeignKeyConstraint, Index, Uuid, func
from sqlmodel import Field

from tables.base import ID, USD, Base, amount_check


class UsageCharge(Base, table=True):
    """What one record cost. Nobody can update or delete it, and a record has at most one.

    The charges of a ledger entry add up to its amount: checked at commit.
    """

    __tablename__ = "usage_charge"
    __table_args__ = (
        ForeignKeyConstraint(
            ["team_id", "inference_record_id"],
            ["inference_record.team_id", "inference_record.record_id"],
        ),
        ForeignKeyConstraint(
            ["ledger_entry_id", "team_id"], ["ledger_entry.entry_id", "ledger_entry.team_id"]
        ),
        amount_check("amount_usd", ">= 0"),
        CheckConstraint("amount_usd = 0 OR ledger_entry_id IS NOT NULL", name="ledger_entry_id"),
        Index(None, "ledger_entry_id"),
    )

    inference_record_id: int = Field(primary_key=True, sa_type=BigInteger)
    team_id: str = Field(sa_type=ID)
    price_id: uuid.UUID = Field(sa_type=Uuid, foreign_key="price.price_id")
    amount_usd: Decimal = Field(sa_type=USD)
    ledger_entry_id: int | None = Field(default=None, sa_type=BigInteger)
    """The USAGE debit that took it. NULL only for an amount of zero, which debits nothing."""
    created_at: datetime = Field(default=None, sa_column_kwargs={"server_default": func.now()})
