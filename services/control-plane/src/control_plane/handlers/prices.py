"""`/prices`: versions of what a provider's model costs; added, never changed."""

import uuid
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.responses import Response

from contracts.control import PRICE_CHANGED, PriceChanged
from control_plane import store
from control_plane.domain import prices
from control_plane.domain.changes import change
from control_plane.domain.instants import unix_us
from control_plane.handlers import examples
from control_plane.handlers.examples import shown
from control_plane.handlers.fields import (
    Asked,
    AskedInstant,
    Model,
    PriceUsd,
    Provider,
    Told,
    Usd,
)
from control_plane.handlers.openapi import EVENT_ID, conflict
from control_plane.handlers.pages import Listing, Page, PageAsked
from control_plane.handlers.services import Known
from control_plane.handlers.writes import Creation, Done
from control_plane.store.database import now
from control_plane.store.prices import Filters
from tables import Price as PriceRow
from tables.prices import TOKEN_CLASSES

router = APIRouter(prefix="/admin/v1", tags=["prices"])


class NewUsdPerMillion(Asked):
    """USD per million tokens of each class."""

    input: PriceUsd = Field(description="Input that isn't cached.")
    output: PriceUsd
    cache_read: PriceUsd | None = Field(default=None, description="Absent: as `input`.")
    cache_write_5m: PriceUsd | None = Field(default=None, description="Absent: as `input`.")
    cache_write_1h: PriceUsd | None = Field(default=None, description="Absent: as `input`.")
    reasoning: PriceUsd | None = Field(
        default=None, description="Reasoning reported outside output. Absent: as `output`."
    )


class NewPrice(Asked):
    """A price to add."""

    model_config = shown(examples.NEW_PRICE)

    provider: Provider = Field(description="The provider's name in the routes.")
    model: Model = Field(description="The provider's own name of the model.")
    usd_per_million: NewUsdPerMillion
    effective_from: AskedInstant | None = Field(
        default=None, description="Absent: now. Not in the past, except for a minute."
    )


class UsdPerMillion(Told):
    """USD per million tokens of each class."""

    input: Usd
    cache_read: Usd
    cache_write_5m: Usd
    cache_write_1h: Usd
    output: Usd
    reasoning: Usd


class Price(Told):
    """One version of a price."""

    model_config = shown(examples.PRICE)

    price_id: uuid.UUID
    provider: str
    model: str
    usd_per_million: UsdPerMillion
    effective_from: datetime
    created_at: datetime


class AddedPrice(Price):
    """A price that was added."""

    model_config = shown(examples.ADDED_PRICE)

    event_id: str | None = EVENT_ID


class PricesAsked(PageAsked):
    """Which prices."""

    provider: Provider | None = Field(default=None, description="Only this provider's.")
    model: Model | None = Field(default=None, description="Only this model's.")


_LISTING: Listing[PriceRow] = Listing(
    "prices", (str, str, datetime), lambda row: (row.provider, row.model, row.effective_from)
)


def _tell(row: PriceRow) -> Price:
    amounts = {name: getattr(row, f"{name}_usd_per_million") for name in TOKEN_CLASSES}
    return Price(
        price_id=row.price_id,
        provider=row.provider,
        model=row.model,
        usd_per_million=UsdPerMillion(**amounts),
        effective_from=row.effective_from,
        created_at=row.created_at,
    )


@router.post("/prices", status_code=201, response_model=AddedPrice, responses=conflict("price"))
async def add_price(new: NewPrice, creation: Creation) -> Response:
    """Add a price. Inferences that began before it took effect keep the one they began with."""
    amounts = prices.complete(prices.AskedPrice(**new.usd_per_million.model_dump()))

    async def work(session: AsyncSession) -> Done:
        instant = await now(session)
        row = await store.prices.create(
            session,
            new.provider,
            new.model,
            amounts,
            prices.effective_from(new.effective_from, instant),
        )
        message = PriceChanged(
            price_id=str(row.price_id),
            provider=row.provider,
            model=row.model,
            changed_at_us=unix_us(instant),
        )
        event_id = await store.outbox.append(session, change(PRICE_CHANGED, message))
        return Done(AddedPrice(**dict(_tell(row)), event_id=event_id))

    return await creation.run(work)


@router.get("/prices")
async def list_prices(known: Known, asked: Annotated[PricesAsked, Query()]) -> Page[Price]:
    """List prices by provider, model and instant of effect: past, present and to come."""
    after = _LISTING.after(asked)
    filters = Filters(asked.provider, asked.model)
    async with known.database.reading() as session:
        rows = await store.prices.page(session, filters, after, asked.limit + 1)
    return _LISTING.page(asked, rows, _tell)
