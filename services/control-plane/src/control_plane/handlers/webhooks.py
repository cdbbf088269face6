"""`/webhook-deliveries`: what the webhook was told, and what it is still owed."""

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
from tables import WebhookDelivery

router = APIRouter(prefix="/admin/v1", tags=["webhooks"])


class Delivery(Told):
    """One event that is owed to the webhook."""

    model_config = shown(examples.DELIVERY)

    message_id: str = Field(description="The header `webhook-id`; also the event's id.")
    type: str
    data: dict[str, Any]
    created_at: datetime
    attempts: int
    next_attempt_at: datetime | None = Field(description="Null: it is done with.")
    last_status: int | None = Field(
        description="What the receiver answered last; null: nothing yet."
    )
    last_error: str | None = Field(description="Why it didn't answer; null: it did.")
    delivered_at: datetime | None = Field(description="Null: it isn't.")
    given_up_at: datetime | None = Field(description="Null: it isn't.")


class DeliveriesAsked(PageAsked):
    """Which deliveries."""

    owed: bool | None = Field(
        default=None, description="Only those that are still owed, or that are done with."
    )


_LISTING: Listing[WebhookDelivery] = Listing(
    "webhook-deliveries", (datetime, str), lambda row: (row.created_at, row.message_id)
)


def _tell(row: WebhookDelivery) -> Delivery:
    is_done = row.delivered_at is not None or row.given_up_at is not None
    return Delivery(
        message_id=row.message_id,
        type=row.kind,
        data=json.loads(row.payload),
        created_at=row.created_at,
        attempts=row.attempts,
        next_attempt_at=None if is_done else row.next_attempt_at,
        last_status=row.last_status,
        last_error=row.last_error,
        delivered_at=row.delivered_at,
        given_up_at=row.given_up_at,
    )


@router.get("/webhook-deliveries")
async def list_webhook_deliveries(
    known: Known, asked: Annotated[DeliveriesAsked, Query()]
) -> Page[Delivery]:
    """List what the webhook was told or is owed, the newest first."""
    after = _LISTING.after(asked)
    async with known.database.reading() as session:
        rows = await store.deliveries.page(session, after, asked.limit + 1, owed=asked.owed)
    return _LISTING.page(asked, rows, _tell)


@router.get("/webhook-deliveries/{message_id}", responses=not_found("delivery"))
async def get_webhook_delivery(message_id: Id, known: Known) -> Delivery:
    """Return one delivery."""
    async with known.database.reading() as session:
        row = await store.deliveries.get(session, message_id)
    if row is None:
        raise NotFoundError(f"There is no delivery {message_id}.", code="delivery_not_found")
    return _tell(row)
