"""Prices: versions of what a provider's model costs."""

import uuid
from datetime import datetime
from decimal import Decimal

from sqlalchemy import CheckConstraint, Text, UniqueConstraint, Uuid, func
from sqlmodel import Field

from tables.base import USD, Base

TOKEN_CLASSES = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")


class Price(Base, table=True):
    """One version of a price, USD per million tokens by token class. Nobody can edit it."""

    __tablename__ = "price"
    __table_args__ = (
        UniqueConstraint("provider", "model", "effective_from"),
        *(
            CheckConstraint(
                f"{name}_usd_per_million BETWEEN 0 AND 1000000", name=f"{name}_usd_per_million"
            )
            for name in TOKEN_CLASSES
        ),
    )

    price_id: uuid.UUID = Field(
        default=None,
        primary_key=True,
        sa_type=Uuid,
        sa_column_kwargs={"server_default": func.gen_random_uuid()},
    )
    provider: str = Field(sa_type=Text)
    model: str = Field(sa_type=Text)
    input_usd_per_million: Decimal = Field(sa_type=USD)
    cache_read_usd_per_million: Decimal = Field(sa_type=USD)
    cache_write_5m_usd_per_million: Decimal = Field(sa_type=USD)
    cache_write_1h_usd_per_million: Decimal = Field(sa_type=USD)
    output_usd_per_million: Decimal = Field(sa_type=USD)
    reasoning_usd_per_million: Decimal = Field(sa_type=USD)
    """For reasoning that a provider reports outside its output."""
    effective_from: datetime
    """The version in effect is the latest one whose `effective_from` has come."""
    created_at: datetime = Field(default=None, sa_column_kwargs={"server_default": func.now()})
