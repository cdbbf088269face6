"""Inference records as settlement keeps them, and how far it has come with each."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Identity,
    Index,
    Integer,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlmodel import Field

from tables.base import ID, Base
from tables.prices import TOKEN_CLASSES


class RecordState(StrEnum):
    """How far settlement has come with a record."""

    PENDING = "PENDING"
    """Has usage, waits for its charge."""
    SETTLED = "SETTLED"
    """Has its charge."""
    UNBILLABLE = "UNBILLABLE"
    """Has no usage: visible as unknown spend, never charged."""
    HELD = "HELD"
    """Kept for a person: its usage is absurd or its price is missing."""
    WRITTEN_OFF = "WRITTEN_OFF"
    """Was held, and a person decided that nobody pays for it."""


class InferenceRecord(Base, table=True):
    """What the gateway observed of one attempt; the columns follow contracts.inference.

    Nothing observed is checked against other tables: an observation is kept even where it names
    a key, a tier or a price that is not there. Instants of the attempt are the edge's clock.
    """

    __tablename__ = "inference_record"
    __table_args__ = (
        UniqueConstraint("inference_id", "attempt_no"),
        UniqueConstraint("team_id", "record_id"),
        Index(
            "inference_record_pending_idx",
            "team_id",
            "record_id",
            postgresql_where=text("state = 'PENDING'"),
        ),
        Index(None, "stream_sequence"),
        Index(None, "team_id", "started_at"),
        Index("inference_record_held_idx", "record_id", postgresql_where=text("state = 'HELD'")),
        CheckConstraint("attempt_no > 0", name="attempt_no"),
        CheckConstraint(
            "state IN ('PENDING', 'SETTLED', 'UNBILLABLE', 'HELD', 'WRITTEN_OFF')", name="state"
        ),
        CheckConstraint("(state = 'SETTLED') = (settled_at IS NOT NULL)", name="settled_at"),
        CheckConstraint("(state = 'HELD') = (held_reason IS NOT NULL)", name="held_reason"),
        CheckConstraint(
            "state <> 'PENDING' OR num_nulls("
            + ", ".join(f"{c}_tokens" for c in TOKEN_CLASSES)
            + ") = 0",
            name="pending_usage",
        ),
        *(CheckConstraint(f"{c}_tokens >= 0", name=f"{c}_tokens") for c in TOKEN_CLASSES),
        # Each row is written twice, so half of the row versions die.
        {
            "postgresql_with": {
                "autovacuum_vacuum_scale_factor": 0.02,
                "autovacuum_vacuum_insert_scale_factor": 0.05,
                "autovacuum_analyze_scale_factor": 0.02,
            }
        },
    )

    record_id: int | None = Field(
        default=None,
        primary_key=True,
        sa_type=BigInteger,
        sa_column_args=(Identity(always=True),),
    )
    inference_id: str = Field(sa_type=ID)
    attempt_no: int = Field(sa_type=Integer)
    team_id: str = Field(sa_type=ID)
    api_key_id: str = Field(sa_type=ID)
    endpoint: str = Field(sa_type=Text)
    provider: str = Field(sa_type=Text)
    model_asked: str = Field(sa_type=Text)
    model_sent: str | None = Field(default=None, sa_type=Text)
    model_served: str | None = Field(default=None, sa_type=Text)
    price_id: str | None = Field(default=None, sa_type=ID)
    """The pinned price, as observed: text, so that a wrong one is kept too."""
    tier_id: str | None = Field(default=None, sa_type=ID)
    outcome: str = Field(sa_type=Text)
    usage_source: str = Field(sa_type=Text)
    input_tokens: int | None = Field(default=None, sa_type=BigInteger)
    cache_read_tokens: int | None = Field(default=None, sa_type=BigInteger)
    cache_write_5m_tokens: int | None = Field(default=None, sa_type=BigInteger)
    cache_write_1h_tokens: int | None = Field(default=None, sa_type=BigInteger)
    output_tokens: int | None = Field(default=None, sa_type=BigInteger)
    reasoning_tokens: int | None = Field(default=None, sa_type=BigInteger)
    """Tokens of each class, each counted once. NULL in all: usage is unknown."""
    usage_reported: str | None = Field(default=None, sa_type=Text)
    """The provider's usage object as JSON text."""
    provider_request_id: str | None = Field(default=None, sa_type=Text)
    streaming: bool
    client_gone: bool
    started_at: datetime
    first_byte_at: datetime | None = None
    finished_at: datetime | None = None
    status_code: int | None = Field(default=None, sa_type=Integer)
    trace_id: str | None = Field(default=None, sa_type=Text)
    state: RecordState = Field(sa_type=ID)
    held_reason: str | None = Field(default=None, sa_type=Text)
    """Why a person must look. NULL unless HELD."""
    stream_sequence: int = Field(sa_type=BigInteger)
    """Where the record stands in the stream INFERENCE_RECORDS."""
    received_at: datetime = Field(default=None, sa_column_kwargs={"server_default": func.now()})
    """Database clock, when settlement first stored it."""
    settled_at: datetime | None = None
    """Database clock. NULL unless SETTLED."""
