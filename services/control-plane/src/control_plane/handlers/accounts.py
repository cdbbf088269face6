"""`/teams/{id}/account`, its ledger, credits and adjustments."""

from datetime import datetime
from decimal import Decimal

from fastapi import APIRouter
from pydantic import Field
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.responses import Response

from contracts.admission import LimitsRequest
from contracts.control import ACCOUNT_ADJUSTED, AccountAdjusted
from control_plane import store
from control_plane.domain import balances
from control_plane.domain.changes import change
from control_plane.domain.errors import UnavailableError
from control_plane.domain.instants import unix_us
from control_plane.handlers import examples
from control_plane.handlers.examples import shown
from control_plane.handlers.fields import Asked, Id, PositiveUsd, Sentence, SignedUsd, Told, Usd
from control_plane.handlers.openapi import EVENT_ID, conflict, not_found
from control_plane.handlers.pages import Listing, Page, PageQuery
from control_plane.handlers.services import Known
from control_plane.handlers.writes import Creation, Done
from kit.money import usd_from_nano
from tables import LedgerEntry as LedgerRow
from tables.account import Entry, Posting
from tables.ledger import Direction, Reason

router = APIRouter(prefix="/admin/v1/teams/{team_id}", tags=["accounts"])


class NewCredit(Asked):
    """Money that was paid in."""

    model_config = shown(examples.NEW_CREDIT)

    amount: PositiveUsd
    reason: Sentence = Field(description="For people; kept as the entry's note.")
    reference: Sentence | None = Field(default=None, description="Your own id of the cause.")


class NewAdjustment(Asked):
    """A correction of the balance, upwards or downwards."""

    model_config = shown(examples.NEW_ADJUSTMENT)

    amount: SignedUsd = Field(description="Above zero raises the balance, below lowers it.")
    reason: Sentence = Field(description="For people; kept as the entry's note.")
    reference: Sentence | None = Field(default=None, description="Your own id of the cause.")


class LedgerEntry(Told):
    """One append-only credit or debit."""

    model_config = shown(examples.LEDGER_ENTRY)

    entry_id: int
    team_id: str
    direction: Direction
    reason: Reason
    amount: Usd = Field(description="Above zero; `direction` says which way.")
    balance_after: Usd
    account_version: int = Field(description="1, 2, 3, … without gaps.")
    reference: str | None
    note: str | None
    created_at: datetime


class PostedEntry(LedgerEntry):
    """An entry that was just written."""

    model_config = shown(examples.POSTED_ENTRY)

    event_id: str | None = EVENT_ID


class CachedBalance(Told):
    """The balance admission reads: the settled one less rough debits, in whole nano-USD."""

    balance: Usd
    version: int | None = Field(description="The account version it began with.")


class Account(Told):
    """A team's account."""

    model_config = shown(examples.ACCOUNT)

    team_id: str
    balance: Usd = Field(description="The settled balance.")
    version: int = Field(description="The number of its ledger entries.")
    cached: CachedBalance | None = Field(description="Null: see `cached_note`.")
    cached_note: str | None = Field(description="Why there is no cached balance.")


_LISTING: Listing[LedgerRow] = Listing("ledger", (int,), lambda row: (row.account_version,))


def _tell(row: LedgerRow | Entry) -> LedgerEntry:
    return LedgerEntry(
        entry_id=row.entry_id or 0,
        team_id=row.team_id,
        direction=row.direction,
        reason=row.reason,
        amount=row.amount_usd,
        balance_after=row.balance_after_usd,
        account_version=row.account_version,
        reference=row.reference,
        note=row.note,
        created_at=row.created_at,
    )


async def _post(session: AsyncSession, signed_usd: Decimal, posting: Posting) -> Done:
    """Move a balance by a signed amount, whose size is the posting's, and tell everyone."""
    direction = Direction.CREDIT if signed_usd > 0 else Direction.DEBIT
    entry = await store.accounts.post(session, direction, posting)
    balances.check(entry.balance_after_usd)
    message = AccountAdjusted(
        team_id=entry.team_id,
        entry_id=str(entry.entry_id),
        amount_usd=signed_usd,
        balance_usd=entry.balance_after_usd,
        version=entry.account_version,
        changed_at_us=unix_us(entry.created_at),
    )
    event_id = await store.outbox.append(session, change(ACCOUNT_ADJUSTED, message, entry.team_id))
    return Done(PostedEntry(**dict(_tell(entry)), event_id=event_id))


@router.post(
    "/credits",
    status_code=201,
    response_model=PostedEntry,
    responses=not_found("team") | conflict("credit"),
)
async def credit(team_id: Id, new: NewCredit, creation: Creation) -> Response:
    """Credit money that was paid in. A team at a negative balance may call again at once."""
    posting = Posting(
        team_id=team_id,
        amount_usd=new.amount,
        reason=Reason.CREDIT,
        reference=new.reference,
        note=new.reason,
    )

    async def work(session: AsyncSession) -> Done:
        await store.teams.get(session, team_id)
        return await _post(session, new.amount, posting)

    return await creation.run(work)


@router.post(
    "/adjustments",
    status_code=201,
    response_model=PostedEntry,
    responses=not_found("team") | conflict("adjustment"),
)
async def adjust(team_id: Id, new: NewAdjustment, creation: Creation) -> Response:
    """Correct the balance, upwards or downwards, below zero if need be."""
    posting = Posting(
        team_id=team_id,
        # abs() would round to 28 digits.
        amount_usd=new.amount.copy_abs(),
        reason=Reason.ADJUSTMENT,
        reference=new.reference,
        note=new.reason,
    )

    async def work(session: AsyncSession) -> Done:
        await store.teams.get(session, team_id)
        return await _post(session, new.amount, posting)

    return await creation.run(work)


@router.get("/account", responses=not_found("team"))
async def get_account(team_id: Id, known: Known) -> Account:
    """Return the settled balance, and the cached one that admission judges by."""
    async with known.database.reading() as session:
        row = await store.accounts.get(session, team_id)
    cached, note = await _cached(known, team_id)
    return Account(
        team_id=team_id,
        balance=row.balance_usd,
        version=row.version,
        cached=cached,
        cached_note=note,
    )


async def _cached(known: Known, team_id: str) -> tuple[CachedBalance | None, str | None]:
    try:
        reply = await known.admission.limits(LimitsRequest(team_id=team_id))
    except UnavailableError as error:
        return None, error.message
    if reply.balance_nano_usd is None:
        return None, "Not cached at the moment; the next request fills it."
    balance = CachedBalance(
        balance=usd_from_nano(reply.balance_nano_usd), version=reply.balance_version
    )
    return balance, None


@router.get("/ledger", responses=not_found("team"))
async def list_ledger(team_id: Id, known: Known, page: PageQuery) -> Page[LedgerEntry]:
    """List a team's ledger entries, the newest first."""
    after = _LISTING.after(page)
    async with known.database.reading() as session:
        await store.accounts.get(session, team_id)
        rows = await store.accounts.ledger_page(session, team_id, after, page.limit + 1)
    return _LISTING.page(page, rows, _tell)
