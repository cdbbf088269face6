"""`/events`: what the outbox holds: every change that was told, and when."""

import json
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from control_plane import store
from control_plane.domain.errors import NotFoundError
from control_plane.handlers import examples
from control_plane.handlers.examples import shown
from control_plane.handlers.fields import Id, Told
from control_plane.handlers.openapi import not_found
from control_plane.handlers.pages import Listing, Page, PageAsked
from control_plane.handlers.services import Known
from tables import OutboxMessage

router = APIRouter(prefix="/admin/v1", tags=["events"])


class ChangeEvent(Told):
    """One change event."""

    model_config = shown(examples.EVENT)

    event_id: str = Field(description="Also its `Nats-Msg-Id`.")
    subject: str
    message: dict[str, Any] = Field(description="As the catalogue of contracts describes it.")
    created_at: datetime = Field(description="When the change was made.")
    published_at: datetime | None = Field(
        description="When the stream had acknowledged it; null: it is still owed."
    )


class EventsAsked(PageAsked):
    """Which events."""

    published: bool | None = Field(
        default=None, description="Only those that were published, or that are still owed."
    )


_LISTING: Listing[OutboxMessage] = Listing("events", (int,), lambda row: (row.id or 0,))


def _tell(row: OutboxMessage) -> ChangeEvent:
    return ChangeEvent(
        event_id=row.message_id,
        subject=row.subject,
        message=json.loads(row.payload),
        created_at=row.created_at,
        published_at=row.published_at,
    )


@router.get("/events")
async def list_events(known: Known, asked: Annotated[EventsAsked, Query()]) -> Page[ChangeEvent]:
    """List change events, the newest first."""
    after = _LISTING.after(asked)
    async with known.database.reading() as session:
        rows = await store.outbox.page(session, after, asked.limit + 1, published=asked.published)
    return _LISTING.page(asked, rows, _tell)


@router.get("/events/{event_id}", responses=not_found("event"))
async def get_event(event_id: Id, known: Known) -> ChangeEvent:
    """Return one change event: ask here whether a change was told to everyone."""
    async with known.database.reading() as session:
        row = await store.outbox.get(session, event_id)
    if row is None:
        raise NotFoundError(f"There is no event {event_id}.", code="event_not_found")
    return _tell(row)
