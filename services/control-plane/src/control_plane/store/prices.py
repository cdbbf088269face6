"""Prices: versions that are added and never changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec
from sqlalchemy import select, tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from contracts.usage import UsdPerMillion
from control_plane.domain.cursors import Key
from control_plane.domain.errors import ConflictError
from tables import Price


@dataclass(frozen=True, slots=True)
class Filters:
    """Which prices; None: all."""

    provider: str | None = None
    model: str | None = None


async def create(
    session: AsyncSession,
    provider: str,
    model: str,
    usd_per_million: UsdPerMillion,
    effective_from: datetime,
) -> Price:
    """Add a price. Raises ConflictError where one takes effect at the same instant."""
    amounts = {
        f"{name}_usd_per_million": amount
        for name, amount in msgspec.structs.asdict(usd_per_million).items()
    }
    statement = (
        insert(Price)
        .values(provider=provider, model=model, effective_from=effective_from, **amounts)
        .on_conflict_do_nothing()
        .returning(Price)
    )
    price = (await session.scalars(statement)).one_or_none()
    if price is None:
        raise ConflictError(
            f"There is a price of {provider} {model} from that instant already.",
            code="price_exists",
            field="effective_from",
        )
    return price


async def page(
    session: AsyncSession, filters: Filters, after: Key | None, limit: int
) -> Sequence[Price]:
    """Return prices by (provider, model, instant of effect), those after that sort key."""
    order = (col(Price.provider), col(Price.model), col(Price.effective_from))
    statement = select(Price)
    if filters.provider is not None:
        statement = statement.where(col(Price.provider) == filters.provider)
    if filters.model is not None:
        statement = statement.where(col(Price.model) == filters.model)
    if after is not None:
        statement = statement.where(tuple_(*order) > after)
    return (await session.scalars(statement.order_by(*order).limit(limit))).all()
