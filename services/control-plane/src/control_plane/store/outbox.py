"""The outbox: change events written with their change, published after its commit.

Per subject, ids ascend in commit order: a writer holds its subject until its commit, and takes the
id while holding it. Only the oldest unpublished event of a subject may be taken for publishing,
and whoever takes it holds it; so any number of relays publish each subject in order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, exists, func, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlmodel import col

from control_plane.domain.changes import Change
from control_plane.domain.cursors import Key
from kit.ids import new_id
from tables import OutboxMessage
from tables.outbox import HOLD_SUBJECT, NOTIFY


@dataclass(frozen=True, slots=True)
class Depth:
    """How much is still owed, and for how long: seconds of the database's clock."""

    messages: int
    oldest_s: float


async def append(session: AsyncSession, change: Change) -> str:
    """Add an event to the transaction of its change; return its id."""
    await session.execute(HOLD_SUBJECT, {"subject": change.subject})
    event_id = new_id()
    await session.execute(
        insert(OutboxMessage).values(
            subject=change.subject, message_id=event_id, payload=change.payload
        )
    )
    await session.execute(NOTIFY)
    return event_id


async def take(session: AsyncSession, limit: int) -> Sequence[OutboxMessage]:
    """Return the oldest unpublished event of each subject that no other relay holds; hold them."""
    older = aliased(OutboxMessage)
    has_older = exists().where(
        col(older.published_at).is_(None),
        col(older.subject) == col(OutboxMessage.subject),
        col(older.id) < col(OutboxMessage.id),
    )
    statement = (
        select(OutboxMessage)
        .where(col(OutboxMessage.published_at).is_(None), ~has_older)
        .order_by(col(OutboxMessage.id))
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return (await session.scalars(statement)).all()


async def mark_published(session: AsyncSession, ids: Sequence[int]) -> None:
    """Note that the stream has these events."""
    await session.execute(
        update(OutboxMessage)
        .where(col(OutboxMessage.id).in_(ids))
        .values(published_at=func.clock_timestamp()),
        execution_options={"synchronize_session": False},
    )


async def depth(session: AsyncSession) -> Depth:
    """Return how much is still owed."""
    age = func.clock_timestamp() - func.min(col(OutboxMessage.created_at))
    statement = select(func.count(), func.coalesce(func.extract("epoch", age), 0)).where(_is_owed())
    messages, oldest_s = (await session.execute(statement)).one()
    return Depth(int(messages), float(oldest_s))


async def get(session: AsyncSession, event_id: str) -> OutboxMessage | None:
    """Return one event; None: there is none."""
    statement = select(OutboxMessage).where(col(OutboxMessage.message_id) == event_id)
    return (await session.scalars(statement)).one_or_none()


async def page(
    session: AsyncSession, after: Key | None, limit: int, *, published: bool | None
) -> Sequence[OutboxMessage]:
    """Return events by (id), the newest first, those after that sort key; `published` None: all."""
    statement = select(OutboxMessage)
    if published is not None:
        statement = statement.where(_is_owed() if not published else ~_is_owed())
    if after is not None:
        statement = statement.where(tuple_(col(OutboxMessage.id)) < after)
    return (
        await session.scalars(statement.order_by(col(OutboxMessage.id).desc()).limit(limit))
    ).all()


def _is_owed() -> ColumnElement[bool]:
    return col(OutboxMessage.published_at).is_(None)
