"""The stream of inference records beyond consuming it: how far it is, single messages, trimming."""

from dataclasses import dataclass
from datetime import datetime

import nats.js.errors
from nats.aio.client import Client

from contracts.inference import INFERENCE_RECORDED, INFERENCE_RECORDS
from settlement.domain.trimming import Extent
from settlement.errors import StreamUnavailableError
from settlement.store.failures import named_stream_failures

_STREAM = INFERENCE_RECORDS.name
_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a consumer is: messages it wasn't given yet, and given ones not yet acknowledged."""

    unread: int
    unacknowledged: int
    floor: int
    """The sequence up to which everything is acknowledged or was given up."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return self.unread == 0 and self.unacknowledged == 0


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """One message as the stream holds it; `stored_at` is the NATS server's clock."""

    sequence: int
    subject: str
    payload: bytes
    stored_at: datetime


class RecordStream:
    """The stream `INFERENCE_RECORDS` and the consumer that settles it.

    Every method raises StreamUnavailableError for no answer.
    """

    def __init__(self, client: Client, consumer: str) -> None:
        self._jetstream = client.jetstream(timeout=_TIMEOUT_S)
        self._consumer = consumer

    async def extent(self) -> Extent:
        """Return what the stream holds now."""
        with named_stream_failures():
            info = await self._jetstream.stream_info(_STREAM)
        state, max_bytes = info.state, info.config.max_bytes
        limit = max_bytes if max_bytes is not None and max_bytes > 0 else None
        return Extent(state.first_seq, state.last_seq, state.bytes, limit)

    async def progress(self) -> Progress:
        """Return how far consuming the records is."""
        return await self.progress_of(_STREAM, self._consumer)

    async def progress_of(self, stream: str, consumer: str) -> Progress:
        """Return how far a consumer of any stream is."""
        with named_stream_failures():
            info = await self._jetstream.consumer_info(stream, consumer)
        floor = info.ack_floor.stream_seq if info.ack_floor else 0
        return Progress(info.num_pending or 0, info.num_ack_pending or 0, floor)

    async def message(self, sequence: int) -> StreamMessage | None:
        """Return the first message from `sequence` on; None: there is none."""
        with named_stream_failures():
            try:
                raw = await self._jetstream.get_msg(
                    _STREAM, sequence, INFERENCE_RECORDED.wildcard, direct=True, next=True
                )
            except nats.js.errors.NotFoundError:
                return None
        return StreamMessage(raw.seq or 0, raw.subject or "", raw.data or b"", _time(raw.time))

    async def forget_before(self, sequence: int) -> None:
        """Remove every message below `sequence` for good."""
        with named_stream_failures():
            await self._jetstream.purge_stream(_STREAM, seq=sequence)


def _time(value: datetime | None) -> datetime:
    if value is None:
        raise StreamUnavailableError("a message came without its time")
    return value
