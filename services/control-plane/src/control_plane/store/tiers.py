"""Tiers: created and changed by the same call, never removed."""

from collections.abc import Sequence
from dataclasses import asdict
from enum import Enum, auto

from sqlalchemy import select, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from control_plane.domain.cursors import Key
from control_plane.domain.errors import NotFoundError
from control_plane.domain.tiers import TierNumbers
from tables import Tier


class Written(Enum):
    """What a write did."""

    CREATED = auto()
    CHANGED = auto()
    NOTHING = auto()
    """It was like that before."""


async def get(session: AsyncSession, tier_id: str) -> Tier:
    """Return a tier. Raises NotFoundError where there is none."""
    tier = await session.get(Tier, tier_id)
    if tier is None:
        raise NotFoundError(f"There is no tier {tier_id}.", code="tier_not_found")
    return tier


async def page(session: AsyncSession, after: Key | None, limit: int) -> Sequence[Tier]:
    """Return tiers by (id), those after that sort key."""
    statement = select(Tier)
    if after is not None:
        statement = statement.where(tuple_(col(Tier.tier_id)) > after)
    return (await session.scalars(statement.order_by(col(Tier.tier_id)).limit(limit))).all()


async def put(session: AsyncSession, tier_id: str, numbers: TierNumbers) -> tuple[Tier, Written]:
    """Create the tier or give it these numbers."""
    values = asdict(numbers)
    creation = (
        insert(Tier).values(tier_id=tier_id, **values).on_conflict_do_nothing().returning(Tier)
    )
    created = (await session.scalars(creation)).one_or_none()
    if created is not None:
        return created, Written.CREATED
    this = col(Tier.tier_id) == tier_id
    locked = select(Tier).where(this).with_for_update(key_share=True)
    tier = (await session.scalars(locked)).one()
    if all(getattr(tier, name) == value for name, value in values.items()):
        return tier, Written.NOTHING
    statement = update(Tier).where(this).values(**values).returning(Tier)
    changed = await session.scalars(statement, execution_options={"populate_existing": True})
    return changed.one(), Written.CHANGED
