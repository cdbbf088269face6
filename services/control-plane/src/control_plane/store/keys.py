"""API keys: their public half and the hash of their secret."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from control_plane.domain.cursors import Key
from control_plane.domain.errors import NotFoundError
from tables import ApiKey


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """What is stored of a new key. `secret_hash` are the 32 bytes of the HMAC."""

    key_id: str
    team_id: str
    name: str
    secret_hash: bytes
    allowed_models: list[str] | None
    expires_at: datetime | None


async def create(session: AsyncSession, row: KeyRow) -> ApiKey:
    """Add a key to a team that exists."""
    statement = (
        insert(ApiKey)
        .values(
            key_id=row.key_id,
            team_id=row.team_id,
            name=row.name,
            secret_hash=row.secret_hash,
            allowed_models=row.allowed_models,
            expires_at=row.expires_at,
        )
        .returning(ApiKey)
    )
    return (await session.scalars(statement)).one()


async def page(
    session: AsyncSession, team_id: str, after: Key | None, limit: int
) -> Sequence[ApiKey]:
    """Return a team's keys by (creation, id), those after that sort key; revoked ones too."""
    order = (col(ApiKey.created_at), col(ApiKey.key_id))
    statement = select(ApiKey).where(col(ApiKey.team_id) == team_id)
    if after is not None:
        statement = statement.where(tuple_(*order) > after)
    return (await session.scalars(statement.order_by(*order).limit(limit))).all()


async def revoke(session: AsyncSession, key_id: str) -> tuple[ApiKey, bool]:
    """Revoke a key; return it, and whether it was not revoked before.

    Raises:
        NotFoundError: there is no such key.

    """
    this = col(ApiKey.key_id) == key_id
    revocation = (
        update(ApiKey)
        .where(this, col(ApiKey.revoked_at).is_(None))
        .values(revoked_at=func.clock_timestamp())
        .returning(ApiKey)
    )
    revoked = (await session.scalars(revocation)).one_or_none()
    if revoked is not None:
        return revoked, True
    key = (await session.scalars(select(ApiKey).where(this))).one_or_none()
    if key is None:
        raise NotFoundError(f"There is no key {key_id}.", code="key_not_found")
    return key, False
