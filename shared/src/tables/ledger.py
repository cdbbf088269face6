"""Ledger entries: append-only credits and debits of an account."""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from sqlalchemy import BigInteger, CheckConstraint, Identity, Text, UniqueConstraint, func
from sqlmodel import Field

from tables.base import ID, USD, Base, amount_check


class Direction(StrEnum):
    """Which way an entry moved the balance."""

    CREDIT = "CREDIT"
    DEBIT = "DEBIT"


class Reason(StrEnum):
    """Why an entry was written."""

    CREDIT = "CREDIT"
    """Money was paid in. Credit only; the control plane."""
    ADJUSTMENT = "ADJUSTMENT"
    """A person corrected the balance. Either direction; the control plane."""
    USAGE = "USAGE"
    """Usage charges were settled. Debit only; settlement."""


class LedgerEntry(Base, table=True):
    """One credit or debit. Nobody can update or delete it; only the account's functions add one."""

    __tablename__ = "ledger_entry"
    __table_args__ = (
        UniqueConstraint("team_id", "account_version"),
        UniqueConstraint("entry_id", "team_id"),
        amount_check("amount_usd", "> 0"),
        CheckConstraint(
            "(direction, reason) IN (('CREDIT', 'CREDIT'), ('CREDIT', 'ADJUSTMENT'),"
            " ('DEBIT', 'ADJUSTMENT'), ('DEBIT', 'USAGE'))",
            name="reason",
        ),
        CheckConstraint("account_version > 0", name="account_version"),
    )

    entry_id: int | None = Field(
        default=None,
        primary_key=True,
        sa_type=BigInteger,
        sa_column_args=(Identity(always=True),),
    )
    team_id: str = Field(sa_type=ID, foreign_key="account.team_id")
    direction: Direction = Field(sa_type=ID)
    reason: Reason = Field(sa_type=ID)
    amount_usd: Decimal = Field(sa_type=USD)
    """Always above zero; `direction` says which way."""
    balance_after_usd: Decimal = Field(sa_type=USD)
    account_version: int = Field(sa_type=BigInteger)
    """The account's version after this entry: 1, 2, 3, … without gaps."""
    reference: str | None = Field(default=None, sa_type=Text)
    """The writer's own name for the cause, an invoice say. NULL: none was given."""
    note: str | None = Field(default=None, sa_type=Text)
    """For people. NULL: none was given."""
    created_at: datetime = Field(
        default=None, sa_column_kwargs={"server_default": func.clock_timestamp()}
    )
    """Database clock, read while the account was locked, so it rises with the version."""
