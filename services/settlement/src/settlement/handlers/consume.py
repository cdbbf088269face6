"""Consume: records come off the stream, are stored, and only then acknowledged.

A record may be delivered any number of times, in any order and to several replicas; storing it
again changes nothing. While Postgres doesn't answer, a batch is kept in hand, so that an outage
uses up no deliveries. A record that came often is handled alone, so that one that breaks its batch
can't take the others along until the server gives all of them up.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from nats.aio.msg import Msg

from contracts.inference import INFERENCE_RECORDED, INFERENCE_RECORDS
from kit import background, log
from kit.bus.consuming import Durable, Puller
from kit.bus.errors import BusError, DisconnectedError, NoReplyError
from kit.crashpoint import crash_at
from kit.errors import NotReadyError
from settlement.domain.classification import Held, classify
from settlement.domain.reading import Refusal, RefusalKind, read
from settlement.errors import RowRefusedError, StoreConflictError, StoreUnavailableError
from settlement.handlers.backlog import Backlog
from settlement.handlers.dead_letters import CONSUMER, DeadLetters, Undeliverable
from settlement.handlers.metrics import CONFIRMATIONS_MISSING, CONSUMED, FAILURES, HELD
from settlement.handlers.pace import pause
from settlement.settings import Settings
from settlement.store.records import Arrival, RecordStore, Stored

# A fetch returns as soon as something arrives; this bounds how long a stop waits for it.
_FETCH_WAIT_S = 0.25
_RETRY_S = 0.5
_MS_PER_S = 1_000
_LOOP = "consume"
# From this delivery on a record is handled alone.
_ALONE_FROM_DELIVERY = 3

_logger = log.get(__name__)


def durable(settings: Settings) -> Durable:
    """Return the consumer that all replicas share."""
    return Durable(
        stream=INFERENCE_RECORDS.name,
        name=CONSUMER,
        subjects=(INFERENCE_RECORDED.wildcard,),
        ack_wait_s=settings.ack_wait_s,
        max_deliver=settings.max_deliver,
        # Enough for a batch in the hands of each of some twenty replicas.
        max_ack_pending=20 * settings.consume_batch_records,
    )


@dataclass(frozen=True, slots=True)
class _Taken:
    """A message and the record in it."""

    message: Msg
    arrival: Arrival


class Consume:
    """Takes records off the stream, and tells the backlog."""

    def __init__(
        self,
        puller: Puller,
        records: RecordStore,
        dead_letters: DeadLetters,
        backlog: Backlog,
        settings: Settings,
    ) -> None:
        self._puller = puller
        self._records = records
        self._dead_letters = dead_letters
        self._backlog = backlog
        self._settings = settings

    async def run(self, stop: asyncio.Event) -> None:
        """Take batches until told to stop; the one in hand is finished first."""
        while not stop.is_set():
            try:
                messages = await self._puller.fetch(
                    self._settings.consume_batch_records,
                    _FETCH_WAIT_S,
                    self._settings.gather_ms / _MS_PER_S,
                )
            except DisconnectedError as error:
                _logger.warning("no records for now", detail=str(error))
                await self._reopen(stop)
                continue
            self._backlog.unread = messages[-1].metadata.num_pending if messages else 0
            async with self._kept(messages):
                for group in _groups(messages):
                    await self._handle_safely(group, stop)

    async def _reopen(self, stop: asyncio.Event) -> None:
        """Wait a moment, then make sure that the consumer is there: it may have been deleted."""
        await pause(_RETRY_S, stop)
        try:
            await self._puller.open()
        except NotReadyError as error:
            _logger.warning("records not ready", detail=str(error))

    async def _handle_safely(self, messages: Sequence[Msg], stop: asyncio.Event) -> None:
        """Handle a group; whatever goes wrong, the next one has its turn."""
        try:
            await self._handle(messages, stop)
        except StoreUnavailableError:
            await self._give_back(messages)
        except BusError as error:
            # A dead letter couldn't be kept; its message comes again.
            FAILURES.labels(_LOOP).inc()
            _logger.warning("batch not finished", detail=str(error))
        except Exception:  # the outermost loop: what was not stored comes again
            FAILURES.labels(_LOOP).inc()
            _logger.exception("batch failed", records=len(messages))
            await pause(_RETRY_S, stop)

    async def _handle(self, messages: Sequence[Msg], stop: asyncio.Event) -> None:
        """Store and acknowledge messages; those that can't be stored become dead letters.

        Raises:
            StoreUnavailableError: told to stop while Postgres didn't answer.
            BusError: a dead letter was not kept; everything else was handled.

        """
        crash_at("settlement.fetched")
        taken: list[_Taken] = []
        refused: list[tuple[Msg, Refusal]] = []
        for message in messages:
            record = read(message.data, message.subject)
            if isinstance(record, Refusal):
                refused.append((message, record))
                continue
            outcome = classify(record, self._settings.max_usage_tokens)
            arrival = Arrival(record, message.metadata.sequence.stream, outcome)
            taken.append(_Taken(message, arrival))
        refused += await self._store(taken, stop)
        for message, refusal in refused:
            await self._bury(message, refusal)

    async def _store(
        self, taken: Sequence[_Taken], stop: asyncio.Event
    ) -> list[tuple[Msg, Refusal]]:
        """Store and acknowledge; return what can't be stored. One bad row fails no other."""
        if not taken:
            return []
        try:
            stored = await self._insert([item.arrival for item in taken], stop)
        except RowRefusedError as error:
            if len(taken) == 1:
                return [(taken[0].message, Refusal(RefusalKind.REFUSED, str(error)))]
            half = len(taken) // 2
            return [
                *await self._store(taken[:half], stop),
                *await self._store(taken[half:], stop),
            ]
        crash_at("settlement.stored")
        self._backlog.stored.set()
        conflicting = {arrival.stream_sequence for arrival in stored.conflicting}
        _count(stored, known=len(taken) - len(stored.new) - len(conflicting))
        if self._backlog.traces is not None:
            pairs = [(item.message, item.arrival) for item in taken]
            self._backlog.traces.stored(pairs, stored.record_ids)
        refused: list[tuple[Msg, Refusal]] = []
        done: list[Msg] = []
        for item in taken:
            if item.arrival.stream_sequence in conflicting:
                detail = "another record is stored under its inference_id and attempt_no"
                refused.append((item.message, Refusal(RefusalKind.CONFLICTING, detail)))
            else:
                done.append(item.message)
        await self._acknowledge(done)
        crash_at("settlement.acknowledged")
        return refused

    async def _insert(self, arrivals: Sequence[Arrival], stop: asyncio.Event) -> Stored:
        """Store, again and again while Postgres doesn't answer and nobody tells us to stop."""
        while True:
            try:
                return await self._records.insert(arrivals)
            except StoreConflictError:
                continue
            except StoreUnavailableError as error:
                FAILURES.labels(_LOOP).inc()
                _logger.warning("records wait", records=len(arrivals), detail=str(error))
                if stop.is_set():
                    raise
            await pause(_RETRY_S, stop)

    async def _acknowledge(self, messages: Sequence[Msg]) -> None:
        try:
            await self._puller.ack_all(messages)
        except NoReplyError:
            # They come again, which changes nothing.
            CONFIRMATIONS_MISSING.inc(len(messages))
            _logger.warning("records not acknowledged", records=len(messages))

    async def _bury(self, message: Msg, refusal: Refusal) -> None:
        sequence = message.metadata.sequence.stream
        undeliverable = Undeliverable(sequence, message.subject, message.data)
        await self._dead_letters.keep(undeliverable, refusal)
        await self._acknowledge([message])

    async def _give_back(self, messages: Iterable[Msg]) -> None:
        """Let another replica have the messages at once."""
        for message in messages:
            with suppress(DisconnectedError):
                await self._puller.give_back(message)

    @asynccontextmanager
    async def _kept(self, messages: Sequence[Msg]) -> AsyncIterator[None]:
        """Keep the server from delivering messages again while we are at work on them."""

        async def keep() -> None:
            while True:
                await asyncio.sleep(self._settings.ack_wait_s / 3)
                for message in messages:
                    with suppress(DisconnectedError):
                        await self._puller.still_working(message)

        keeping = asyncio.create_task(keep(), name="keep batch")
        try:
            yield
        finally:
            await background.cancel([keeping])


def _groups(messages: Sequence[Msg]) -> list[list[Msg]]:
    """Return the messages that may be handled together, then each that must be handled alone."""
    together = [m for m in messages if m.metadata.num_delivered < _ALONE_FROM_DELIVERY]
    alone = [[m] for m in messages if m.metadata.num_delivered >= _ALONE_FROM_DELIVERY]
    return [together, *alone] if together else alone


def _count(stored: Stored, known: int) -> None:
    CONSUMED.labels("known").inc(known)
    CONSUMED.labels("conflicting").inc(len(stored.conflicting))
    for arrival in stored.new:
        CONSUMED.labels(type(arrival.outcome).__name__.lower()).inc()
        if isinstance(arrival.outcome, Held):
            HELD.labels(arrival.outcome.reason.value).inc()
            _logger.error(
                "record held",
                reason=arrival.outcome.reason.value,
                team_id=arrival.record.team_id,
                inference_id=arrival.record.inference_id,
                attempt_no=arrival.record.attempt_no,
            )
