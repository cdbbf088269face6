"""API keys: their public half and the hash of their secret."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from control_plane.domain.cursors import Key
from control_plane.domain.errors import ConflictError, NotFoundError
from tables import ApiKey


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """What is stored of a new key. `secret_hash` are the 32 bytes of the HMAC."""

    key_id: str
    team_id: str
    name: str
    secret_hash: bytes
    allowed_models: list[str] | None
    limits: dict[str, Any]
    expires_at: datetime | None


async def create(session: AsyncSession, row: KeyRow) -> ApiKey:
    """Add a key to a team that exists."""
    statement = insert(ApiKey).values(**asdict(row)).returning(ApiKey)
    return (await session.scalars(statement)).one()


async def of_team(session: AsyncSession, team_id: str, key_id: str) -> ApiKey:
    """Return a key of a team. Raises NotFoundError where the team has none of that name."""
    key = await session.get(ApiKey, key_id)
    if key is None or key.team_id != team_id:
        raise _not_found(key_id)
    return key


async def page(
    session: AsyncSession, team_id: str, after: Key | None, limit: int
) -> Sequence[ApiKey]:
    """Return a team's keys by (creation, id), those after that sort key; revoked ones too."""
    order = (col(ApiKey.created_at), col(ApiKey.key_id))
    statement = select(ApiKey).where(col(ApiKey.team_id) == team_id)
    if after is not None:
        statement = statement.where(tuple_(*order) > after)
    return (await session.scalars(statement.order_by(*order).limit(limit))).all()


async def change(
    session: AsyncSession, key_id: str, values: Mapping[str, Any]
) -> tuple[ApiKey, bool]:
    """Give a key these values; return it, and whether any of them was another before.

    Raises:
        NotFoundError: there is no such key.
        ConflictError: it is revoked.

    """
    key = await _lock_valid(session, key_id)
    if all(getattr(key, name) == value for name, value in values.items()):
        return key, False
    return await _update(session, key_id, **values), True


async def rotate(
    session: AsyncSession, key_id: str, secret_hash: bytes, overlap: timedelta
) -> ApiKey:
    """Give a key another secret; the one before is good for the overlap, the one before it no more.

    Raises:
        NotFoundError: there is no such key.
        ConflictError: it is revoked.

    """
    await _lock_valid(session, key_id)
    return await _update(
        session,
        key_id,
        secret_hash=secret_hash,
        old_secret_hash=col(ApiKey.secret_hash),
        old_secret_until=func.clock_timestamp() + overlap,
    )


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
        raise _not_found(key_id)
    return key, False


async def _update(session: AsyncSession, key_id: str, **values: object) -> ApiKey:
    statement = (
        update(ApiKey).where(col(ApiKey.key_id) == key_id).values(**values).returning(ApiKey)
    )
    options = {"populate_existing": True}
    return (await session.scalars(statement, execution_options=options)).one()


async def _lock_valid(session: AsyncSession, key_id: str) -> ApiKey:
    locked = select(ApiKey).where(col(ApiKey.key_id) == key_id).with_for_update(key_share=True)
    key = (await session.scalars(locked)).one_or_none()
    if key is None:
        raise _not_found(key_id)
    if key.revoked_at is not None:
        raise ConflictError(f"The key {key_id} is revoked, for good.", code="key_revoked")
    return key


def _not_found(key_id: str) -> NotFoundError:
    return NotFoundError(f"There is no key {key_id}.", code="key_not_found")
