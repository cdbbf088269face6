"""Has settlement read the stream again from its first message, and waits until all is settled."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import nats.js.errors
from nats.aio.client import Client
from nats.js.api import StreamState
from sqlalchemy.ext.asyncio import AsyncEngine

from contracts.inference import INFERENCE_RECORDS
from quotagate.statements import statement
from quotagate.stores import CannotTellError

# Settlement's durable consumer is named after the service, which owns the stream and makes it.
_CONSUMER = INFERENCE_RECORDS.owner
_SQL = Path(__file__).with_name("sql")
_KNOWN = statement(_SQL, "known")
_PENDING = statement(_SQL, "pending")
_SINCE = statement(_SQL, "since")
_API_TIMEOUT_S = 10.0
_LOOK_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Gap:
    """Sequences that were trimmed from the stream, and under none of which a record is stored.

    They follow the newest record that the database had, so records are missing unless all of these
    were repetitions or dead letters.
    """

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Patience:
    """How long settlement may stand still, and who hears how far it is."""

    standstill_s: float = 60.0
    hear: Callable[[int, int], None] = lambda _reached, _last: None
    """Called at each look with the sequence that is reached, and the last."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay came to."""

    last: int
    """The last sequence that was read again; 0: the stream was never written to."""
    new_records: int
    """Records that the database had not before; those that came meanwhile are among them."""
    gap: Gap | None


async def replay(client: Client, engine: AsyncEngine, patience: Patience) -> Replay:
    """Replay what the stream holds now, and return once nothing of it waits for its charge.

    Raises:
        CannotTellError: there is no such stream, or settlement stands still.

    """
    stream = await _stream(client)
    async with engine.connect() as connection:
        known = (await connection.execute(_KNOWN)).one()
    # Without its consumer settlement makes a new one, which begins at the beginning.
    with suppress(nats.js.errors.NotFoundError):
        jetstream = client.jetstream(timeout=_API_TIMEOUT_S)
        await jetstream.delete_consumer(INFERENCE_RECORDS.name, _CONSUMER)
    await _wait(client, engine, stream.last_seq, patience)
    async with engine.connect() as connection:
        new = (await connection.execute(_SINCE, {"record_id": known.record_id})).scalar_one()
    after = known.stream_sequence + 1
    gap = Gap(after, stream.first_seq - 1) if after < stream.first_seq else None
    return Replay(stream.last_seq, new, gap)


async def _wait(client: Client, engine: AsyncEngine, last: int, patience: Patience) -> None:
    clock = asyncio.get_running_loop()
    best, deadline_s = (-1, 0), clock.time() + patience.standstill_s
    while True:
        reached, pending = await _reached(client, last), await _pending(engine, last)
        patience.hear(reached, last)
        if reached >= last and not pending:
            return
        if (reached, -pending) > best:
            best, deadline_s = (reached, -pending), clock.time() + patience.standstill_s
        elif clock.time() > deadline_s:
            raise CannotTellError(
                f"settlement stands still at sequence {reached} of {last}, {pending} records wait"
                " for their charge: does it run, and is it ready?"
            )
        await asyncio.sleep(_LOOK_EVERY_S)


async def _stream(client: Client) -> StreamState:
    jetstream = client.jetstream(timeout=_API_TIMEOUT_S)
    try:
        return (await jetstream.stream_info(INFERENCE_RECORDS.name)).state
    except nats.js.errors.NotFoundError:
        raise CannotTellError(f"nats: there is no stream {INFERENCE_RECORDS.name}") from None


async def _reached(client: Client, last: int) -> int:
    """Return up to which sequence everything is acknowledged; 0: the consumer isn't there yet."""
    jetstream = client.jetstream(timeout=_API_TIMEOUT_S)
    try:
        info = await jetstream.consumer_info(INFERENCE_RECORDS.name, _CONSUMER)
    except nats.js.errors.NotFoundError:
        return 0
    if not (info.num_pending or info.num_ack_pending):
        return last  # also where the last messages were removed, and none is there to acknowledge
    return min(last, info.ack_floor.stream_seq if info.ack_floor else 0)


async def _pending(engine: AsyncEngine, last: int) -> int:
    async with engine.connect() as connection:
        count: int = (await connection.execute(_PENDING, {"last": last})).scalar_one()
    return count
