"""`/tiers`: named policies."""

from datetime import datetime
from http import HTTPStatus

from fastapi import APIRouter
from pydantic import Field
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.responses import Response

from contracts.control import POLICY_CHANGED, PolicyChanged
from contracts.limits import MOST_RPM, MOST_TPM
from control_plane import store
from control_plane.domain import tiers
from control_plane.domain.changes import change
from control_plane.domain.instants import unix_us
from control_plane.handlers import examples
from control_plane.handlers.examples import shown
from control_plane.handlers.fields import Asked, Id, Told
from control_plane.handlers.limit_fields import FurtherLimits, RequestBurst, TokenBurst, as_stored
from control_plane.handlers.openapi import EVENT_ID, not_found
from control_plane.handlers.pages import Listing, Page, PageQuery
from control_plane.handlers.services import Known
from control_plane.handlers.stored import PROBLEM, as_told
from control_plane.handlers.writes import Change, Done
from control_plane.store.database import now
from control_plane.store.tiers import Written
from tables import Tier as TierRow

router = APIRouter(prefix="/admin/v1", tags=["tiers"])


class TierNumbers(FurtherLimits, Asked):
    """The numbers of a tier."""

    model_config = shown(examples.TIER_NUMBERS)

    rpm: int = Field(strict=True, ge=1, le=MOST_RPM, description="Requests per minute.")
    tpm: int = Field(
        strict=True,
        ge=1,
        le=MOST_TPM,
        description="Tokens per minute, input and output together.",
    )
    request_burst: RequestBurst = Field(
        default=0,
        description="Requests that may be in debt beyond the one in turn; at most `rpm`.",
    )
    token_burst: TokenBurst = Field(
        default=0,
        description="Tokens that may be in debt while requests are still admitted; at most `tpm`.",
    )


class Tier(FurtherLimits, Told):
    """A tier."""

    model_config = shown(examples.TIER)

    tier_id: str
    rpm: int
    tpm: int
    request_burst: int
    token_burst: int
    problem: str | None = PROBLEM
    version: int = Field(description="Raised by one with each change.")
    created_at: datetime
    updated_at: datetime


class WrittenTier(Tier):
    """A tier after it was written."""

    model_config = shown(examples.WRITTEN_TIER)

    event_id: str | None = EVENT_ID


_LISTING: Listing[TierRow] = Listing("tiers", (str,), lambda row: (row.tier_id,))


def _tell(row: TierRow) -> Tier:
    stored = tiers.TierNumbers(
        rpm=row.rpm,
        tpm=row.tpm,
        request_burst=row.request_burst,
        token_burst=row.token_burst,
        limits=row.limits,
    )
    columns = row.model_dump(exclude={"limits"})
    return as_told(Tier, {**row.limits, **columns}, tiers.problem(stored))


@router.put(
    "/tiers/{tier_id}",
    response_model=WrittenTier,
    responses={201: {"model": WrittenTier, "description": "The tier was created."}},
)
async def put_tier(tier_id: Id, asked: TierNumbers, writes: Change) -> Response:
    """Create a tier, or give it other numbers; what is left out gets its default.

    Every admission loads changed numbers at once. Debts stay, in time.
    """
    numbers = tiers.TierNumbers(
        rpm=asked.rpm,
        tpm=asked.tpm,
        request_burst=asked.request_burst,
        token_burst=asked.token_burst,
        limits=as_stored(asked),
    )
    tiers.check(numbers)

    async def work(session: AsyncSession) -> Done:
        row, written = await store.tiers.put(session, tier_id, numbers)
        event_id = None
        if written is not Written.NOTHING:
            message = PolicyChanged(tier_id=tier_id, changed_at_us=unix_us(await now(session)))
            event_id = await store.outbox.append(session, change(POLICY_CHANGED, message, tier_id))
        body = WrittenTier(**_tell(row).model_dump(), event_id=event_id)
        created = written is Written.CREATED
        return Done(body, status=HTTPStatus.CREATED if created else HTTPStatus.OK)

    return await writes.run(work)


@router.get("/tiers/{tier_id}", responses=not_found("tier"))
async def get_tier(tier_id: Id, known: Known) -> Tier:
    """Return one tier."""
    async with known.database.reading() as session:
        return _tell(await store.tiers.get(session, tier_id))


@router.get("/tiers")
async def list_tiers(known: Known, page: PageQuery) -> Page[Tier]:
    """List tiers by id."""
    after = _LISTING.after(page)
    async with known.database.reading() as session:
        rows = await store.tiers.page(session, after, page.limit + 1)
    return _LISTING.page(page, rows, _tell)
