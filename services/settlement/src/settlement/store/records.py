"""Inference records in Postgres: stored once, whatever the stream delivers how often."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from contracts.inference import InferenceRecord
from contracts.usage import Usage
from kit.postgres import one_statement_each
from settlement.domain.classification import Class, Held, Pending
from settlement.domain.trimming import StoredRecord
from settlement.store.failures import named_failures
from settlement.store.statements import statement
from tables.records import RecordState

_INSERT = statement("insert_records")
_STORED = statement("stored_records")
_BY_SEQUENCE = statement("records_by_sequence")
_TEAMS_WITH_PENDING = statement("teams_with_pending")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# In the order of the rows that _row makes.
_COLUMNS = (
    "inference_id", "attempt_no", "team_id", "api_key_id", "endpoint", "provider", "model_asked",
    "model_sent", "model_served", "price_id", "tier_id", "outcome", "usage_source", "input_tokens",
    "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens", "output_tokens",
    "reasoning_tokens", "usage_reported", "provider_request_id", "streaming", "client_gone",
    "started_at", "first_byte_at", "finished_at", "status_code", "trace_id", "state",
    "held_reason", "stream_sequence",
)  # fmt: skip

Key = tuple[str, int]
"""inference_id and attempt_no."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A record as it came off the stream, and what is to become of it."""

    record: InferenceRecord
    stream_sequence: int
    outcome: Class

    @property
    def key(self) -> Key:
        """What makes it the same record."""
        return self.record.inference_id, self.record.attempt_no


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a batch: each arrival is new, was there already, or contradicts what was."""

    new: Sequence[Arrival]
    conflicting: Sequence[Arrival]
    """Another record is stored under the id: these are not."""
    record_ids: Mapping[Key, int]
    """The row's number of each new one."""


class RecordStore:
    """The table of inference records."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = one_statement_each(engine)

    async def insert(self, arrivals: Sequence[Arrival]) -> Stored:
        """Store what isn't stored yet, all or nothing; returns after the commit.

        Raises:
            StoreConflictError, RowRefusedError: nothing was stored.
            StoreUnavailableError: stored or not; inserting again finds out.

        """
        # In one order everywhere: two replicas that store the same records wait, but never for
        # each other.
        ordered = sorted(arrivals, key=lambda arrival: arrival.key)
        columns = zip(*map(_row, ordered), strict=True)
        parameters = {name: list(values) for name, values in zip(_COLUMNS, columns, strict=True)}
        with named_failures():
            async with self._engine.connect() as connection:
                rows = (await connection.execute(_INSERT, parameters)).all()
                ids = {(row.inference_id, row.attempt_no): row.record_id for row in rows}
                new, known = _split(ordered, set(ids))
                conflicting = await _conflicting(connection, known) if known else []
        return Stored(new, conflicting, ids)

    async def teams_with_pending(self, after: str, teams: int) -> list[str]:
        """Return up to `teams` ids of teams above `after` that wait for charges, in id order.

        Raises:
            StoreUnavailableError: no answer.

        """
        with named_failures():
            async with self._engine.connect() as connection:
                rows = await connection.execute(
                    _TEAMS_WITH_PENDING, {"after": after, "teams": teams}
                )
                return list(rows.scalars())

    async def by_sequence(self, sequences: range, limit: int) -> list[StoredRecord]:
        """Return the first `limit` of these stream sequences under which a record is stored.

        Raises:
            StoreUnavailableError: no answer.

        """
        parameters = {"first": sequences.start, "end": sequences.stop, "records": limit}
        with named_failures():
            async with self._engine.connect() as connection:
                rows = await connection.execute(_BY_SEQUENCE, parameters)
                return [StoredRecord(row.stream_sequence, row.done_at) for row in rows]

    async def is_stored(self, key: Key) -> bool:
        """Return whether there is a record under these ids.

        Raises:
            StoreUnavailableError: no answer.

        """
        with named_failures():
            async with self._engine.connect() as connection:
                return bool(await _stored(connection, [key]))


def _row(arrival: Arrival) -> tuple[object, ...]:
    record, outcome = arrival.record, arrival.outcome
    return (
        record.inference_id, record.attempt_no, record.team_id, record.api_key_id,
        record.endpoint, record.provider, record.model_asked, record.model_sent,
        record.model_served, record.price_id, record.tier_id, record.outcome.value,
        record.usage_source.value, *_tokens(record.usage), record.usage_reported,
        record.provider_request_id,
        record.streaming, record.client_gone, _instant(record.started_at_us),
        _instant(record.first_byte_at_us), _instant(record.finished_at_us), record.status_code,
        record.trace_id, _state(outcome).value,
        outcome.reason.value if isinstance(outcome, Held) else None, arrival.stream_sequence,
    )  # fmt: skip


def _tokens(usage: Usage | None) -> tuple[int | None, ...]:
    """Return the tokens by class in the order of the columns; nothing where usage is unknown."""
    if usage is None:
        return (None,) * 6
    return (
        usage.input,
        usage.cache_read,
        usage.cache_write_5m,
        usage.cache_write_1h,
        usage.output,
        usage.reasoning,
    )


def _state(outcome: Class) -> RecordState:
    if isinstance(outcome, Held):
        return RecordState.HELD
    return RecordState.PENDING if isinstance(outcome, Pending) else RecordState.UNBILLABLE


def _instant(time_us: int | None) -> datetime | None:
    return None if time_us is None else _EPOCH + timedelta(microseconds=time_us)


def _split(ordered: Sequence[Arrival], inserted: set[Key]) -> tuple[list[Arrival], list[Arrival]]:
    """Return the arrivals that were inserted, and the rest: what is repeated in a batch is once."""
    new, known = [], []
    for arrival in ordered:
        if arrival.key in inserted:
            inserted.remove(arrival.key)
            new.append(arrival)
        else:
            known.append(arrival)
    return new, known


async def _conflicting(connection: AsyncConnection, known: Sequence[Arrival]) -> list[Arrival]:
    """Return those that would be charged differently from what is stored under their ids."""
    stored = await _stored(connection, [arrival.key for arrival in known])
    return [
        arrival
        for arrival in known
        if (row := stored[arrival.key]).stream_sequence != arrival.stream_sequence
        and tuple(row)[3:] != _charged(arrival.record)
    ]


def _charged(record: InferenceRecord) -> tuple[object, ...]:
    return record.team_id, record.price_id, *_tokens(record.usage)


async def _stored(connection: AsyncConnection, keys: Sequence[Key]) -> dict[Key, Any]:
    parameters = {
        "inference_id": [inference_id for inference_id, _ in keys],
        "attempt_no": [attempt_no for _, attempt_no in keys],
    }
    rows = await connection.execute(_STORED, parameters)
    return {(row.inference_id, row.attempt_no): row for row in rows}
