"""Inference records with their charges; written by settlement, read here."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Select, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from control_plane.domain.cursors import Key
from tables import InferenceRecord, UsageCharge
from tables.records import RecordState


@dataclass(frozen=True, slots=True)
class ChargedRecord:
    """A record and its charge; None: it has none, or none yet."""

    record: InferenceRecord
    charge: UsageCharge | None


async def page(
    session: AsyncSession,
    team_id: str,
    state: RecordState | None,
    after: Key | None,
    limit: int,
) -> Sequence[ChargedRecord]:
    """Return a team's records by (record id), the latest first, those after that sort key."""
    statement = _charged().where(col(InferenceRecord.team_id) == team_id)
    if state is not None:
        statement = statement.where(col(InferenceRecord.state) == state)
    if after is not None:
        statement = statement.where(tuple_(col(InferenceRecord.record_id)) < after)
    return await _all(session, statement.order_by(col(InferenceRecord.record_id).desc()), limit)


async def of_inference(
    session: AsyncSession, team_id: str, inference_id: str, limit: int
) -> Sequence[ChargedRecord]:
    """Return the records of one inference, the first attempt first."""
    statement = _charged().where(
        col(InferenceRecord.inference_id) == inference_id,
        col(InferenceRecord.team_id) == team_id,
    )
    return await _all(session, statement.order_by(col(InferenceRecord.attempt_no)), limit)


def _charged() -> Select[InferenceRecord, UsageCharge]:
    return select(InferenceRecord, UsageCharge).outerjoin(
        UsageCharge, col(UsageCharge.inference_record_id) == col(InferenceRecord.record_id)
    )


async def _all(
    session: AsyncSession, statement: Select[InferenceRecord, UsageCharge], limit: int
) -> Sequence[ChargedRecord]:
    rows = (await session.execute(statement.limit(limit))).all()
    return [ChargedRecord(record, charge) for record, charge in rows]
