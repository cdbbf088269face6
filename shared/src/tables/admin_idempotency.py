"""Idempotency keys of the admin API."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, SmallInteger, func
from sqlmodel import Field

from tables.base import ID, Base


class AdminIdempotency(Base, table=True):
    """What an admin request with an `Idempotency-Key` was answered.

    Insert it at the start of the request's transaction: a second request with the same key
    waits on the primary key until the first has committed or failed.
    """

    __tablename__ = "admin_idempotency"
    __table_args__ = (
        CheckConstraint("octet_length(request_hash) = 32", name="request_hash"),
        CheckConstraint("(status IS NULL) = (response IS NULL)", name="response"),
        Index(None, "created_at"),
    )

    key: str = Field(primary_key=True, sa_type=ID)
    route: str = Field(primary_key=True, sa_type=ID)
    """Method and path template: the same key on another route is another request."""
    request_hash: bytes
    """SHA-256 of the request's body, 32 bytes."""
    status: int | None = Field(default=None, sa_type=SmallInteger)
    """The HTTP status. NULL: the request has not been answered."""
    response: bytes | None = None
    """The body as it was sent, less what may be shown only once. NULL as `status`."""
    created_at: datetime = Field(default=None, sa_column_kwargs={"server_default": func.now()})
