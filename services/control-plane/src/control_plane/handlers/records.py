"""`/teams/{id}/records`: what was observed of each attempt, and what it was charged."""

import uuid
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from control_plane import store
from control_plane.domain.errors import NotFoundError
from control_plane.handlers import examples
from control_plane.handlers.examples import shown
from control_plane.handlers.fields import Id, Told, Usd
from control_plane.handlers.openapi import not_found
from control_plane.handlers.pages import Listing, Page, PageAsked
from control_plane.handlers.services import Known
from control_plane.store.records import ChargedRecord
from kit.money import exact_sum
from tables import InferenceRecord, UsageCharge
from tables.prices import TOKEN_CLASSES
from tables.records import RecordState

router = APIRouter(prefix="/admin/v1/teams/{team_id}", tags=["records"])

# An inference has a handful of attempts; the bound keeps the answer finite whatever happens.
_MOST_ATTEMPTS = 1_000


class Usage(Told):
    """Tokens by class; each token counts in exactly one."""

    input: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    output: int
    reasoning: int


class Charge(Told):
    """The exact price of a record."""

    amount: Usd
    price_id: uuid.UUID
    ledger_entry_id: int | None = Field(description="The debit; null for an amount of zero.")
    created_at: datetime


class Record(Told):
    """One attempt."""

    model_config = shown(examples.RECORD)

    record_id: int
    inference_id: str
    attempt_no: int
    team_id: str
    api_key_id: str
    endpoint: str
    provider: str
    model_asked: str
    model_sent: str | None
    model_served: str | None
    price_id: str | None = Field(description="The price pinned at preflight.")
    tier_id: str | None
    state: RecordState
    held_reason: str | None = Field(description="Why a person must look; null unless HELD.")
    outcome: str
    usage_source: str
    usage: Usage | None = Field(description="Null: unknown spend, not zero.")
    usage_reported: str | None = Field(description="The provider's usage object as JSON text.")
    charge: Charge | None = Field(description="Null: not charged, or not yet.")
    provider_request_id: str | None
    streaming: bool
    client_gone: bool
    status_code: int | None = Field(description="The provider's; null: it didn't answer.")
    trace_id: str | None
    started_at: datetime
    first_byte_at: datetime | None
    finished_at: datetime | None
    received_at: datetime
    settled_at: datetime | None


class Inference(Told):
    """All attempts of one inference."""

    model_config = shown(examples.INFERENCE)

    inference_id: str
    team_id: str
    charged: Usd = Field(description="The sum of its charges so far.")
    attempts: list[Record]


class RecordsAsked(PageAsked):
    """Which records."""

    state: RecordState | None = Field(default=None, description="Only those in this state.")


_SAME_IN_ROW = Record.model_fields.keys() & InferenceRecord.model_fields.keys()

_LISTING: Listing[ChargedRecord] = Listing(
    "records", (int,), lambda row: (row.record.record_id or 0,)
)


def _usage(row: InferenceRecord) -> Usage | None:
    tokens = {name: getattr(row, f"{name}_tokens") for name in TOKEN_CLASSES}
    if all(count is None for count in tokens.values()):
        return None
    return Usage(**{name: count or 0 for name, count in tokens.items()})


def _charge(row: UsageCharge | None) -> Charge | None:
    if row is None:
        return None
    return Charge(
        amount=row.amount_usd,
        price_id=row.price_id,
        ledger_entry_id=row.ledger_entry_id,
        created_at=row.created_at,
    )


def _tell(charged: ChargedRecord) -> Record:
    row = charged.record
    # Not model_dump: the state is text in the row, and it would warn of that in the log.
    same = {name: getattr(row, name) for name in _SAME_IN_ROW}
    return Record(**same, usage=_usage(row), charge=_charge(charged.charge))


@router.get("/records", responses=not_found("team"))
async def list_records(
    team_id: Id, known: Known, asked: Annotated[RecordsAsked, Query()]
) -> Page[Record]:
    """List a team's records, the latest arrived first."""
    after = _LISTING.after(asked)
    async with known.database.reading() as session:
        await store.teams.get(session, team_id)
        rows = await store.records.page(session, team_id, asked.state, after, asked.limit + 1)
    return _LISTING.page(asked, rows, _tell)


@router.get("/records/{inference_id}", responses=not_found("record"))
async def get_records(team_id: Id, inference_id: Id, known: Known) -> Inference:
    """Return every attempt of one inference, the first one first."""
    async with known.database.reading() as session:
        await store.teams.get(session, team_id)
        rows = await store.records.of_inference(session, team_id, inference_id, _MOST_ATTEMPTS)
    if not rows:
        raise NotFoundError(
            f"Team {team_id} has no record of inference {inference_id}.", code="record_not_found"
        )
    return Inference(
        inference_id=inference_id,
        team_id=team_id,
        charged=exact_sum(*(row.charge.amount_usd for row in rows if row.charge is not None)),
        attempts=[_tell(row) for row in rows],
    )
