"""What people decided about held records."""

import uuid
from datetime import datetime
from enum import StrEnum

from sqlalchemy import BigInteger, CheckConstraint, Identity, Index, Text, Uuid, func
from sqlmodel import Field

from tables.base import ID, Base


class Decision(StrEnum):
    """What becomes of a held record."""

    RELEASED = "RELEASED"
    """It is charged as it is; if it can't be, it is held again."""
    WRITTEN_OFF = "WRITTEN_OFF"
    """Nobody pays for it."""


class RecordDecision(Base, table=True):
    """One decision about one record. Nobody can update or delete it; `record_decide` adds it."""

    __tablename__ = "record_decision"
    __table_args__ = (
        CheckConstraint("decision IN ('RELEASED', 'WRITTEN_OFF')", name="decision"),
        CheckConstraint("note <> ''", name="note"),
        Index(None, "record_id"),
    )

    decision_id: int | None = Field(
        default=None,
        primary_key=True,
        sa_type=BigInteger,
        sa_column_args=(Identity(always=True),),
    )
    record_id: int = Field(sa_type=BigInteger, foreign_key="inference_record.record_id")
    decision: Decision = Field(sa_type=ID)
    held_reason: str = Field(sa_type=Text)
    """Why the record had been held."""
    observed_price_id: str | None = Field(default=None, sa_type=ID)
    """The price that the record had named; NULL: none."""
    price_id: uuid.UUID | None = Field(default=None, sa_type=Uuid, foreign_key="price.price_id")
    """The price it was given instead; NULL: it kept its own."""
    note: str = Field(sa_type=Text)
    """Why, in the words of who decided."""
    decided_at: datetime = Field(
        default=None, sa_column_kwargs={"server_default": func.clock_timestamp()}
    )
