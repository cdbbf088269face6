"""Webhook deliveries: events that a committed transaction owes to the operator's receiver."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, Integer, Text, func, text
from sqlmodel import Field

from tables.base import ID, Base


class WebhookDelivery(Base, table=True):
    """One event, written in the transaction that made it true and sent after its commit.

    Instants are of the database's clock.
    """

    __tablename__ = "webhook_delivery"
    __table_args__ = (
        CheckConstraint("attempts >= 0", name="attempts"),
        CheckConstraint("delivered_at IS NULL OR given_up_at IS NULL", name="given_up_at"),
        Index(
            "webhook_delivery_owed_idx",
            "next_attempt_at",
            postgresql_where=text("delivered_at IS NULL AND given_up_at IS NULL"),
        ),
        Index(None, "created_at", "message_id"),
    )

    message_id: str = Field(primary_key=True, sa_type=ID)
    """The header `webhook-id`, by which a receiver drops what it got twice."""
    kind: str = Field(sa_type=Text)
    """The `type` that the receiver is told."""
    payload: bytes
    """The event's message, JSON."""
    created_at: datetime = Field(
        default=None, sa_column_kwargs={"server_default": func.clock_timestamp()}
    )
    attempts: int = Field(
        default=0, sa_type=Integer, sa_column_kwargs={"server_default": text("0")}
    )
    next_attempt_at: datetime = Field(
        default=None, sa_column_kwargs={"server_default": func.clock_timestamp()}
    )
    """Nobody tries before; while somebody tries, when another may think it is dead."""
    last_status: int | None = Field(default=None, sa_type=Integer)
    """What the receiver answered last. NULL: nothing yet, or no answer."""
    last_error: str | None = Field(default=None, sa_type=Text)
    """Why the last attempt got no answer, in one word. NULL: it got one, or there was none."""
    delivered_at: datetime | None = None
    given_up_at: datetime | None = None
