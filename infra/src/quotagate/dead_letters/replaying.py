"""Sends dead letters back to where they came from, once what killed them is mended.

The message goes to its subject again under its own message id. Whatever was stored already stays
single: the stream drops what it still remembers, and the database's unique key the rest. Only when
the stream has acknowledged it does the dead letter go.
"""

from dataclasses import dataclass
from enum import StrEnum

import msgspec
import nats.js.errors
from nats.aio.client import Client
from nats.js.api import Header, RawStreamMsg

from contracts.dead import DEAD_LETTERS, DeadLetter
from contracts.inference import INFERENCE_RECORDS
from kit.bus.errors import BusError
from kit.bus.publishing import Publisher
from quotagate.dead_letters.letters import Letter

_TIMEOUT_S = 10.0


class Fate(StrEnum):
    """What became of a dead letter."""

    REPLAYED = "replayed"
    """Its message is in its stream again; the dead letter is gone."""
    REMEMBERED = "remembered"
    """The stream still remembers the message id and took nothing; the dead letter stays."""
    INCOMPLETE = "incomplete"
    """It was too large to be kept whole, and its stream has forgotten it; the letter stays."""
    UNREADABLE = "unreadable"
    """It says nothing that could be sent; the dead letter stays."""
    REFUSED = "refused"
    """The stream didn't take it, or nobody can tell; the dead letter stays."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What became of one dead letter, and why."""

    number: int
    fate: Fate
    detail: str


class _InferenceKey(msgspec.Struct):
    """As much of an inference record as its message id is made of."""

    inference_id: str
    attempt_no: int


async def replay(client: Client, letter: Letter) -> Replay:
    """Send a dead letter's message again; remove the letter once the stream has acknowledged.

    Repeating it changes nothing but the number of messages in the stream.
    """
    content, payload = letter.content, letter.payload
    if content is None or payload is None:
        return Replay(letter.number, Fate.UNREADABLE, "not a dead letter as we write them")
    original = await _original(client, content)
    if content.payload_cut:
        if original is None or original.data is None:
            return Replay(
                letter.number,
                Fate.INCOMPLETE,
                f"{content.stream} has forgotten {content.stream_sequence}",
            )
        payload = original.data
    message_id = _message_id(content, payload, original)
    try:
        ack = await Publisher(client).publish_raw(
            content.subject, payload, message_id, content.stream, _TIMEOUT_S
        )
    except BusError as error:
        return Replay(letter.number, Fate.REFUSED, str(error))
    if ack.duplicate:
        return Replay(
            letter.number,
            Fate.REMEMBERED,
            f"{content.stream} still remembers {message_id}: try again when its duplicate window"
            " is over",
        )
    await drop(client, letter)
    return Replay(letter.number, Fate.REPLAYED, f"{content.stream} {ack.seq}, {message_id}")


async def drop(client: Client, letter: Letter) -> None:
    """Remove a dead letter for good."""
    await client.jetstream(timeout=_TIMEOUT_S).delete_msg(DEAD_LETTERS.name, letter.number)


async def _original(client: Client, content: DeadLetter) -> RawStreamMsg | None:
    """Return the message itself while its stream has it."""
    try:
        found = await client.jetstream(timeout=_TIMEOUT_S).get_msg(
            content.stream, content.stream_sequence, direct=True
        )
    except nats.js.errors.NotFoundError:
        return None
    return found if found.subject == content.subject else None


def _message_id(content: DeadLetter, payload: bytes, original: RawStreamMsg | None) -> str:
    """Return the message's own id; where nothing tells it, one that is the same each time."""
    if original is not None and original.headers and Header.MSG_ID.value in original.headers:
        return str(original.headers[Header.MSG_ID.value])
    if content.stream == INFERENCE_RECORDS.name:
        try:
            key = msgspec.json.decode(payload, type=_InferenceKey)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
        else:
            return f"{key.inference_id}:{key.attempt_no}"
    return f"dead:{content.stream}:{content.stream_sequence}"
