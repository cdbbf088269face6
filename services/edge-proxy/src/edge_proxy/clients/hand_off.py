"""The hand-off of records: to the stream, durably, or to the spool until the stream takes them.

While a record hasn't found its way, `accepting` is False: a call whose use could not be recorded
is better not made. It becomes True by itself when every record is where it belongs.
"""

import asyncio
import time
from dataclasses import dataclass

from nats.aio.client import Client
from prometheus_client import Counter, Gauge, Histogram

from contracts.contract import encode
from contracts.inference import INFERENCE_RECORDED, InferenceRecord
from edge_proxy.errors import DataDirectoryError
from edge_proxy.store.journal import Journal
from edge_proxy.store.spool import Spool
from kit import log
from kit.bus.errors import BusError
from kit.bus.publishing import Publisher
from kit.crashpoint import crash_at
from kit.metrics import LATENCY_BUCKETS_S

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_REPUBLISH_EVERY_S = 0.25

_logger = log.get(__name__)
_SECONDS = Histogram(
    "quotagate_hand_off_seconds",
    "Seconds from a record to its acknowledgement by the stream.",
    buckets=LATENCY_BUCKETS_S,
)
_RETRIES = Counter(
    "quotagate_hand_off_retries_total", "Publishes of a record that were repeated, same id."
)
_SPOOLED = Counter(
    "quotagate_hand_off_spooled_total", "Records that went to the spool because no ack came."
)
_REPUBLISHED = Counter(
    "quotagate_hand_off_republished_total", "Spooled records that the stream has acknowledged."
)
_DEPTH = Gauge("quotagate_spool_depth", "Records in this process's spool.")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a record is offered to the stream, in seconds of the monotonic clock."""

    hand_off_s: float
    """In all, before it is spooled."""
    ack_timeout_s: float
    """One publish."""


class HandOff:
    """Hands records over, one call a record."""

    def __init__(
        self,
        client: Client,
        publisher: Publisher,
        spool: Spool,
        journal: Journal,
        patience: Patience,
    ) -> None:
        self._client = client
        self._publisher = publisher
        self._spool = spool
        self._journal = journal
        self._patience = patience
        self._struggling = 0
        self._unkept: list[InferenceRecord] = []
        self._stopping = False
        _DEPTH.set_function(lambda: spool.depth)

    @property
    def accepting(self) -> bool:
        """Whether a call made now could be recorded, as far as anybody can tell."""
        return not (
            self._struggling or self._spool.depth or self._unkept or not self._client.is_connected
        )

    @property
    def waiting(self) -> int:
        """How many records the stream hasn't acknowledged though it was asked."""
        return self._struggling + self._spool.depth + len(self._unkept)

    async def deliver(self, record: InferenceRecord) -> bool:
        """Return True once the stream has acknowledged the record, False once it is spooled.

        Either way its attempt's entry in the journal is closed then. If it can't be spooled either,
        the entry stays open as long as the record is only in memory.
        """
        started_s = time.monotonic()
        try:
            delivered = await self._offer(record, started_s + self._patience.hand_off_s)
        except asyncio.CancelledError:
            if self._keep(record):
                self._close(record)
            raise
        if delivered:
            crash_at("edge.published")
            _SECONDS.observe(time.monotonic() - started_s)
            self._close(record)
            return True
        kept = await asyncio.to_thread(self._keep, record)
        crash_at("edge.spooled")
        if kept:
            self._close(record)
        return False

    def stop(self) -> None:
        """Spool at the next failure instead of trying again: the process is about to leave."""
        self._stopping = True

    async def republish(self, stop: asyncio.Event) -> None:
        """Bring spooled records to the stream, until told to stop: a loop beside the service."""
        while not stop.is_set():
            while await self._republish_oldest():
                pass
            try:
                async with asyncio.timeout(_REPUBLISH_EVERY_S):
                    await stop.wait()
            except TimeoutError:
                continue

    async def _offer(self, record: InferenceRecord, deadline_s: float) -> bool:
        pause_s = _FIRST_PAUSE_S
        failures = 0
        try:
            while True:
                try:
                    await self._publish(record, deadline_s)
                except BusError as error:
                    failures += 1
                    self._struggling += failures == 1
                    if failures == 1:
                        _logger.warning("record not acknowledged", error=type(error).__name__)
                else:
                    return True
                if self._stopping or time.monotonic() + pause_s >= deadline_s:
                    return False
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                _RETRIES.inc()
        finally:
            self._struggling -= failures > 0

    async def _publish(self, record: InferenceRecord, deadline_s: float) -> None:
        left_s = max(0.01, deadline_s - time.monotonic())
        await self._publisher.publish_raw(
            INFERENCE_RECORDED.subject_for(record.team_id),
            encode(record),
            record.message_id,
            INFERENCE_RECORDED.stream,
            min(self._patience.ack_timeout_s, left_s),
        )

    def _keep(self, record: InferenceRecord) -> bool:
        """Spool a record; return False where it is only in memory."""
        try:
            self._spool.keep(record.message_id, encode(record))
        except DataDirectoryError as error:
            # Nothing new is accepted meanwhile, so what waits in memory stays little; should the
            # process die, the journal still knows of the attempt.
            _logger.exception("record not spooled", message_id=record.message_id, error=str(error))
            self._unkept.append(record)
            return False
        _SPOOLED.inc()
        return True

    def _close(self, record: InferenceRecord) -> None:
        """Note that an attempt's record is safe."""
        try:
            self._journal.end(record.message_id)
        except DataDirectoryError:
            _logger.exception("journal not written", message_id=record.message_id)

    async def _republish_oldest(self) -> bool:
        """Publish one record that waits; return whether it worked and there may be more."""
        if self._unkept:
            record, name = self._unkept[0], None
        else:
            oldest = self._spool.oldest()
            if oldest is None:
                return False
            name, record = oldest
        try:
            await self._publish(record, time.monotonic() + self._patience.ack_timeout_s)
        except BusError:
            return False
        crash_at("edge.republished")
        if name is None:
            self._unkept.remove(record)
            self._close(record)
        else:
            self._spool.remove(name)
        _REPUBLISHED.inc()
        return True
