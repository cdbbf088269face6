"""Tiers: named policies."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, FetchedValue, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field

from tables.base import ID, Base, id_check, limits_check


class Tier(Base, table=True):
    """A named policy: requests and tokens per minute, and how far each may run into debt."""

    __tablename__ = "tier"
    __table_args__ = (
        id_check("tier_id"),
        CheckConstraint("rpm BETWEEN 1 AND 60000000", name="rpm"),
        CheckConstraint("tpm BETWEEN 1 AND 1000000000000", name="tpm"),
        CheckConstraint("request_burst BETWEEN 0 AND 60000000", name="request_burst"),
        CheckConstraint("token_burst BETWEEN 0 AND 1000000000000", name="token_burst"),
        limits_check("limits"),
    )

    tier_id: str = Field(primary_key=True, sa_type=ID)
    rpm: int = Field(sa_type=BigInteger)
    """Requests per minute."""
    tpm: int = Field(sa_type=BigInteger)
    """Tokens per minute, input and output together."""
    request_burst: int = Field(
        default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": text("0")}
    )
    """Requests that may be in debt beyond the one in turn."""
    token_burst: int = Field(
        default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": text("0")}
    )
    """Tokens that may be in debt while requests are still admitted."""
    limits: dict[str, Any] = Field(
        default_factory=dict, sa_type=JSONB, sa_column_kwargs={"server_default": text("'{}'")}
    )
    """Further limits by the names of contracts.admission.Policy; a missing name is no limit."""
    version: int = Field(
        default=None,
        sa_type=BigInteger,
        sa_column_kwargs={"server_default": text("1"), "server_onupdate": FetchedValue()},
    )
    """Raised by one with each update, by the database."""
    created_at: datetime = Field(default=None, sa_column_kwargs={"server_default": func.now()})
    updated_at: datetime = Field(
        default=None,
        sa_column_kwargs={"server_default": func.now(), "server_onupdate": FetchedValue()},
    )
    """Database clock; set by the database with each update."""
