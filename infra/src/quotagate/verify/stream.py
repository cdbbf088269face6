"""The stream's part of the proof: what settlement acknowledged is in the database."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import Header
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.contract import decode
from contracts.dead import DEAD_LETTERED, DEAD_LETTERS, DeadLetter
from contracts.inference import INFERENCE_RECORDED, INFERENCE_RECORDS, InferenceRecord
from quotagate.statements import statement
from quotagate.stores import CannotTellError
from quotagate.stream_messages import batches
from quotagate.verify.books import SQL
from quotagate.verify.findings import Finding, Kind, Report

# Settlement's durable consumer is named after the service, which owns the stream.
_CONSUMER = INFERENCE_RECORDS.owner
_STORED = statement(SQL, "stored")
_API_TIMEOUT_S = 10.0
_MAX_INT32 = 2**31 - 1

_Key = tuple[str | None, int | None]
_NAMELESS: _Key = (None, None)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far settlement is. `floor`: up to this sequence everything is acknowledged."""

    floor: int
    waiting: int
    """Messages that are not yet stored, as far as the stream knows."""


async def progress(client: Client) -> Progress:
    """Return how far settlement is; nowhere, where it never ran.

    Raises:
        CannotTellError: there is no such stream.

    """
    jetstream = client.jetstream(timeout=_API_TIMEOUT_S)
    try:
        info = await jetstream.consumer_info(INFERENCE_RECORDS.name, _CONSUMER)
    except nats.js.errors.NotFoundError:
        try:
            state = (await jetstream.stream_info(INFERENCE_RECORDS.name)).state
        except nats.js.errors.NotFoundError:
            raise CannotTellError(f"nats: there is no stream {INFERENCE_RECORDS.name}") from None
        return Progress(0, state.messages)
    floor = info.ack_floor.stream_seq if info.ack_floor else 0
    return Progress(floor, (info.num_pending or 0) + (info.num_ack_pending or 0))


async def check_stream(
    client: Client, snapshot: AsyncConnection, floor: int, report: Report
) -> None:
    """Look for each message up to `floor` in a snapshot that was taken after the floor was read.

    Only the messages' headers are read, some hundred at a time; of those without a readable id
    that aren't found, the message as well: it may be stored under another's sequence.
    """
    dead = await _dead_sequences(client)
    looked_at = 0
    async for messages in batches(
        client, INFERENCE_RECORDS.name, INFERENCE_RECORDED.wildcard, headers_only=True
    ):
        acknowledged = [m for m in messages if m.metadata.sequence.stream <= floor]
        for message in await _missing_for_sure(client, snapshot, acknowledged):
            sequence = message.metadata.sequence.stream
            if sequence not in dead:
                message_id = (message.headers or {}).get(Header.MSG_ID.value, "no message id")
                report.add(
                    Finding(
                        Kind.RECORD_NOT_STORED,
                        message.subject.rpartition(".")[2],
                        f"stream sequence {sequence} ({message_id})",
                        "a record",
                        "none",
                    )
                )
        looked_at += len(acknowledged)
        if len(acknowledged) < len(messages):
            break
    report.figures["stream_records"] = looked_at
    report.figures["dead_letters"] = len(dead)


async def _dead_sequences(client: Client) -> set[int]:
    """Return which of the stream's messages are dead letters."""
    dead = set()
    async for messages in batches(client, DEAD_LETTERS.name, DEAD_LETTERED.wildcard):
        for message in messages:
            try:
                letter = decode(message.data, DeadLetter)
            except msgspec.MsgspecError:
                continue  # `quotagate dead-letters list` shows it
            if letter.stream == INFERENCE_RECORDS.name:
                dead.add(letter.stream_sequence)
    return dead


async def _missing_for_sure(
    client: Client, snapshot: AsyncConnection, messages: Sequence[Msg]
) -> list[Msg]:
    missing = await _missing(snapshot, messages, [_key(message) for message in messages])
    named = [message for message in missing if _key(message) is not _NAMELESS]
    nameless = [message for message in missing if _key(message) is _NAMELESS]
    keys = [await _key_within(client, message) for message in nameless]
    return named + await _missing(snapshot, nameless, keys)


async def _missing(
    snapshot: AsyncConnection, messages: Sequence[Msg], keys: Sequence[_Key]
) -> list[Msg]:
    if not messages:
        return []
    rows = await snapshot.execute(
        _STORED,
        {
            "sequences": [message.metadata.sequence.stream for message in messages],
            "inference_ids": [inference_id for inference_id, _ in keys],
            "attempt_nos": [attempt_no for _, attempt_no in keys],
        },
    )
    missing = set(rows.scalars())
    return [message for message in messages if message.metadata.sequence.stream in missing]


async def _key_within(client: Client, message: Msg) -> _Key:
    """Return inference_id and attempt_no from the record itself."""
    jetstream = client.jetstream(timeout=_API_TIMEOUT_S)
    sequence = message.metadata.sequence.stream
    try:
        found = await jetstream.get_msg(INFERENCE_RECORDS.name, sequence, direct=True)
        record = decode(found.data or b"", InferenceRecord)
    except (nats.js.errors.NotFoundError, msgspec.MsgspecError):
        return _NAMELESS
    return record.inference_id, record.attempt_no


def _key(message: Msg) -> _Key:
    """Return inference_id and attempt_no from the message id, if it holds them."""
    message_id = (message.headers or {}).get(Header.MSG_ID.value, "")
    inference_id, _, attempt_no = message_id.rpartition(":")
    if not inference_id or not attempt_no.isdecimal() or int(attempt_no) > _MAX_INT32:
        return _NAMELESS
    return inference_id, int(attempt_no)
