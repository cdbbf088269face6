"""What the server gave up: delivered as often as allowed and never acknowledged.

The consumer's lag reads zero for such a record although it isn't settled. The server says so once,
in an advisory that the stream of dead letters keeps; from that the record becomes a dead letter.
"""

import asyncio

import msgspec
from nats.aio.msg import Msg

from contracts.contract import decode
from contracts.dead import DEAD_LETTERS, MaxDeliveries, max_deliveries_subject
from contracts.inference import INFERENCE_RECORDS
from kit import log
from kit.bus.consuming import Durable, Puller
from kit.bus.errors import BusError, DisconnectedError
from kit.errors import NotReadyError
from settlement.domain.reading import Refusal, RefusalKind, read
from settlement.errors import SettlementError
from settlement.handlers.dead_letters import CONSUMER, DeadLetters, Undeliverable
from settlement.handlers.metrics import FAILURES
from settlement.handlers.pace import pause
from settlement.store.record_stream import RecordStream
from settlement.store.records import RecordStore

GIVEN_UP_CONSUMER = "settlement-given-up"
_BATCH = 50
_FETCH_WAIT_S = 0.25
_RETRY_S = 1.0
_LOOP = "given up"
DURABLE = Durable(
    stream=DEAD_LETTERS.name,
    name=GIVEN_UP_CONSUMER,
    subjects=(max_deliveries_subject(INFERENCE_RECORDS.name, CONSUMER),),
    ack_wait_s=30.0,
    max_deliver=-1,
    max_ack_pending=1_000,
)

_logger = log.get(__name__)


async def nothing_given_up(stream: RecordStream) -> bool:
    """Return whether no message waits to become a dead letter: the stream has its only copy."""
    return (await stream.progress_of(DEAD_LETTERS.name, GIVEN_UP_CONSUMER)).is_done


class GivenUp:
    """Turns the server's advisories into dead letters."""

    def __init__(
        self,
        puller: Puller,
        stream: RecordStream,
        records: RecordStore,
        dead_letters: DeadLetters,
    ) -> None:
        self._puller = puller
        self._stream = stream
        self._records = records
        self._dead_letters = dead_letters

    async def run(self, stop: asyncio.Event) -> None:
        """Handle advisories as they come, until told to stop."""
        while not stop.is_set():
            try:
                for message in await self._puller.fetch(_BATCH, _FETCH_WAIT_S):
                    await self._handle(message)
            except DisconnectedError as error:
                _logger.warning("no advisories for now", detail=str(error))
                await self._reopen(stop)
            except (SettlementError, BusError) as error:
                # The advisory comes again.
                FAILURES.labels(_LOOP).inc()
                _logger.warning("advisory waits", detail=str(error))
                await pause(_RETRY_S, stop)
            except Exception:  # the outermost loop: the advisory comes again
                FAILURES.labels(_LOOP).inc()
                _logger.exception("advisory failed")
                await pause(_RETRY_S, stop)

    async def _reopen(self, stop: asyncio.Event) -> None:
        await pause(_RETRY_S, stop)
        try:
            await self._puller.open()
        except NotReadyError as error:
            _logger.warning("advisories not ready", detail=str(error))

    async def _handle(self, message: Msg) -> None:
        try:
            advisory = decode(message.data, MaxDeliveries)
        except msgspec.MsgspecError as error:
            _logger.error("advisory not readable", detail=str(error))  # noqa: TRY400 - no bug of ours
        else:
            await self._keep(advisory)
        await self._puller.ack(message)

    async def _keep(self, advisory: MaxDeliveries) -> None:
        found = await self._stream.message(advisory.stream_seq)
        if found is None or found.sequence != advisory.stream_seq:
            _logger.warning("record given up, but gone", stream_sequence=advisory.stream_seq)
            return
        record = read(found.payload, found.subject)
        if not isinstance(record, Refusal) and await self._records.is_stored(
            (record.inference_id, record.attempt_no)
        ):
            return  # only its acknowledgements were lost
        refusal = Refusal(
            RefusalKind.UNDELIVERED,
            f"delivered {advisory.deliveries} times and never acknowledged",
        )
        undeliverable = Undeliverable(found.sequence, found.subject, found.payload)
        await self._dead_letters.keep(undeliverable, refusal)
