"""Reads the stream of dead letters; takes nothing off it."""

import base64
import binascii
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

import msgspec
import nats.js.errors
from nats.aio.client import Client

from contracts.contract import decode
from contracts.dead import DEAD_LETTERED, DEAD_LETTERS, DeadLetter, MaxDeliveries
from contracts.inference import INFERENCE_RECORDS
from quotagate.stores import CannotTellError
from quotagate.stream_messages import batches

_API_TIMEOUT_S = 10.0
_ADVISORIES = next(subject for subject in DEAD_LETTERS.subjects if subject.startswith("$JS."))
# Settlement's consumer that makes dead letters of the server's advisories on its records.
_ADVISORY_CONSUMER = f"{INFERENCE_RECORDS.owner}-given-up"


class NoSuchLetterError(CannotTellError):
    """There is no dead letter of this number."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter and its number, which is its sequence in the stream.

    `content` None: whoever wrote it wrote something else than a dead letter.
    """

    number: int
    kept_at: datetime
    """The NATS server's clock."""
    raw: bytes
    content: DeadLetter | None

    @property
    def payload(self) -> bytes | None:
        """Return what is kept of the message that died; None: nothing that can be read."""
        if self.content is None:
            return None
        try:
            return base64.b64decode(self.content.payload_base64, validate=True)
        except binascii.Error:
            return None


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The server's word on a message that it gave up, of which there is no dead letter (yet)."""

    number: int
    kept_at: datetime
    stream: str
    stream_sequence: int
    consumer: str
    deliveries: int


async def letters(client: Client) -> AsyncIterator[Letter]:
    """Yield every dead letter, the oldest first.

    Raises:
        CannotTellError: there is no such stream, or it stopped answering.

    """
    async for messages in batches(client, DEAD_LETTERS.name, DEAD_LETTERED.wildcard):
        for message in messages:
            at = message.metadata
            yield Letter(at.sequence.stream, at.timestamp, message.data, _content(message.data))


async def letter(client: Client, number: int) -> Letter:
    """Return one dead letter.

    Raises:
        NoSuchLetterError: there is none of this number, or it is the server's advisory.
        CannotTellError: JetStream doesn't answer.

    """
    try:
        found = await client.jetstream(timeout=_API_TIMEOUT_S).get_msg(
            DEAD_LETTERS.name, number, direct=True
        )
    except nats.js.errors.NotFoundError:
        raise NoSuchLetterError(f"there is no dead letter {number}") from None
    prefix = DEAD_LETTERED.wildcard.removesuffix("*")
    if found.time is None or not (found.subject or "").startswith(prefix):
        raise NoSuchLetterError(f"{number} is no dead letter, but an advisory of the server")
    data = found.data or b""
    return Letter(number, found.time, data, _content(data))


async def given_up(client: Client, lettered: set[tuple[str, int]]) -> list[GivenUp]:
    """Return what the server gave up and nobody has looked into yet.

    `lettered`: the stream and sequence of each message that has its dead letter. What settlement
    looked into and found stored after all is left out too.

    Raises:
        CannotTellError: there is no such stream, or it stopped answering.

    """
    looked_into = await _looked_into(client)
    found = []
    async for messages in batches(client, DEAD_LETTERS.name, _ADVISORIES):
        for message in messages:
            at = message.metadata
            try:
                advisory = decode(message.data, MaxDeliveries)
            except msgspec.MsgspecError:
                continue  # not of a kind that names a message
            settled = (
                advisory.stream == INFERENCE_RECORDS.name and at.sequence.stream <= looked_into
            )
            if not settled and (advisory.stream, advisory.stream_seq) not in lettered:
                found.append(
                    GivenUp(
                        number=at.sequence.stream,
                        kept_at=at.timestamp,
                        stream=advisory.stream,
                        stream_sequence=advisory.stream_seq,
                        consumer=advisory.consumer,
                        deliveries=advisory.deliveries,
                    )
                )
    return found


async def _looked_into(client: Client) -> int:
    """Return up to which number settlement has looked into the advisories."""
    jetstream = client.jetstream(timeout=_API_TIMEOUT_S)
    try:
        info = await jetstream.consumer_info(DEAD_LETTERS.name, _ADVISORY_CONSUMER)
    except nats.js.errors.NotFoundError:
        return 0
    return info.ack_floor.stream_seq if info.ack_floor else 0


def _content(data: bytes) -> DeadLetter | None:
    try:
        return decode(data, DeadLetter)
    except msgspec.MsgspecError:
        return None
