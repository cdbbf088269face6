"""Webhook deliveries: claimed by one sender at a time, and kept until they are done with."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import ColumnElement, func, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from control_plane.domain.cursors import Key
from control_plane.domain.webhooks import Answer, Fate, Owed
from tables import WebhookDelivery

_PAGE_ORDER = (col(WebhookDelivery.created_at), col(WebhookDelivery.message_id))


@dataclass(frozen=True, slots=True)
class Depth:
    """How many are owed, and for how long the oldest is: seconds of the database's clock."""

    deliveries: int
    oldest_s: float


async def claim(session: AsyncSession, limit: int, lease: timedelta) -> list[Owed]:
    """Take what is due and nobody else has taken; it is due again when the lease has ended.

    So a sender that dies while it sends is followed by another, which sends once more.
    """
    due = (
        select(col(WebhookDelivery.message_id))
        .where(_is_owed(), col(WebhookDelivery.next_attempt_at) <= func.clock_timestamp())
        .order_by(col(WebhookDelivery.next_attempt_at))
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    claiming = (
        update(WebhookDelivery)
        .where(col(WebhookDelivery.message_id).in_(due))
        .values(
            attempts=col(WebhookDelivery.attempts) + 1,
            next_attempt_at=func.clock_timestamp() + lease,
        )
        .returning(WebhookDelivery)
    )
    rows = await session.scalars(claiming, execution_options={"synchronize_session": False})
    return [
        Owed(row.message_id, row.kind, row.payload, row.created_at, row.attempts) for row in rows
    ]


async def note(
    session: AsyncSession, owed: Owed, answer: Answer, fate: Fate, pause: timedelta
) -> None:
    """Note what an attempt came to; one that is done with by now stays as it is."""
    values: dict[str, object] = {"last_status": answer.status, "last_error": answer.error}
    match fate:
        case Fate.DELIVERED:
            values["delivered_at"] = func.clock_timestamp()
        case Fate.GIVEN_UP:
            values["given_up_at"] = func.clock_timestamp()
        case Fate.RETRY:
            values["next_attempt_at"] = func.clock_timestamp() + pause
    await session.execute(
        update(WebhookDelivery)
        .where(col(WebhookDelivery.message_id) == owed.message_id, _is_owed())
        .values(**values),
        execution_options={"synchronize_session": False},
    )


async def depth(session: AsyncSession) -> Depth:
    """Return how much is owed."""
    age = func.clock_timestamp() - func.min(col(WebhookDelivery.created_at))
    statement = select(func.count(), func.coalesce(func.extract("epoch", age), 0)).where(_is_owed())
    deliveries, oldest_s = (await session.execute(statement)).one()
    return Depth(int(deliveries), float(oldest_s))


async def get(session: AsyncSession, message_id: str) -> WebhookDelivery | None:
    """Return one delivery; None: there is none."""
    return await session.get(WebhookDelivery, message_id)


async def page(
    session: AsyncSession, after: Key | None, limit: int, *, owed: bool | None
) -> Sequence[WebhookDelivery]:
    """Return deliveries by (creation, id), the newest first, those after that sort key."""
    statement = select(WebhookDelivery)
    if owed is not None:
        statement = statement.where(_is_owed() if owed else ~_is_owed())
    if after is not None:
        statement = statement.where(tuple_(*_PAGE_ORDER) < after)
    ordered = statement.order_by(*(column.desc() for column in _PAGE_ORDER)).limit(limit)
    return (await session.scalars(ordered)).all()


def _is_owed() -> ColumnElement[bool]:
    delivered, given_up = col(WebhookDelivery.delivered_at), col(WebhookDelivery.given_up_at)
    return delivered.is_(None) & given_up.is_(None)
