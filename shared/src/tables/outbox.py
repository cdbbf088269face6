"""The outbox: events that a committed transaction owes to the bus."""

from datetime import datetime

from sqlalchemy import BigInteger, Identity, Index, Text, UniqueConstraint, func, text
from sqlmodel import Field

from tables.base import ID, Base

CHANNEL = "quotagate_outbox"
"""The Postgres notification that says, at commit, that there is something to publish or send."""

# The first number keeps these apart from other advisory locks; any number would do.
HOLD_SUBJECT = text("SELECT pg_advisory_xact_lock(1364349263, hashtext(:subject))")
"""Whoever adds an event holds its subject until the commit: ids ascend in commit order."""
NOTIFY = text(f"NOTIFY {CHANNEL}")


class OutboxMessage(Base, table=True):
    """One event, written in the transaction that made it true and published after its commit."""

    __tablename__ = "outbox"
    __table_args__ = (
        UniqueConstraint("message_id"),
        Index("outbox_unpublished_idx", "id", postgresql_where=text("published_at IS NULL")),
    )

    id: int | None = Field(
        default=None,
        primary_key=True,
        sa_type=BigInteger,
        sa_column_args=(Identity(always=True),),
    )
    """Ascends, but not in commit order: a smaller id can become visible later."""
    subject: str = Field(sa_type=Text)
    message_id: str = Field(sa_type=ID)
    """The `Nats-Msg-Id`, by which the stream drops what a crash made us publish twice."""
    payload: bytes
    created_at: datetime = Field(default=None, sa_column_kwargs={"server_default": func.now()})
    published_at: datetime | None = None
    """Database clock, after the stream's ack. NULL: still owed."""
