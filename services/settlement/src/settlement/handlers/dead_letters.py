"""Dead letters: what can't be settled is kept with the reason, and stops nobody else."""

from base64 import b64encode
from dataclasses import dataclass

from contracts.dead import DEAD_LETTERED, DeadLetter
from contracts.inference import INFERENCE_RECORDS
from kit import log
from kit.bus.publishing import Publisher
from kit.clock import Clock
from settlement.domain.reading import Refusal
from settlement.handlers.metrics import DEAD_LETTERS

CONSUMER = "settlement"
_TIMEOUT_S = 5.0
# In base64 and with its envelope it still fits the server's largest message, 1 MB.
_MAX_PAYLOAD_BYTES = 700_000
_logger = log.get(__name__)


@dataclass(frozen=True, slots=True)
class Undeliverable:
    """A message of the record stream as it was."""

    sequence: int
    subject: str
    payload: bytes


class DeadLetters:
    """Publishes dead letters to their stream."""

    def __init__(self, publisher: Publisher, clock: Clock) -> None:
        self._publisher = publisher
        self._clock = clock

    async def keep(self, message: Undeliverable, refusal: Refusal) -> None:
        """Keep a message as a dead letter; returns when it is on the server's disk.

        Raises:
            BusError: it may be kept or not; keeping it again adds at most a duplicate.

        """
        cut = len(message.payload) > _MAX_PAYLOAD_BYTES
        letter = DeadLetter(
            stream=INFERENCE_RECORDS.name,
            stream_sequence=message.sequence,
            subject=message.subject,
            consumer=CONSUMER,
            reason=f"{refusal.kind.value}: {refusal.detail}",
            payload_base64=b64encode(message.payload[:_MAX_PAYLOAD_BYTES]).decode(),
            payload_cut=cut,
            failed_at_us=self._clock.now_us(),
        )
        await self._publisher.publish(
            DEAD_LETTERED,
            CONSUMER,
            letter,
            message_id=letter.message_id,
            timeout_s=_TIMEOUT_S,
        )
        DEAD_LETTERS.labels(refusal.kind.value).inc()
        _logger.error(
            "record given up", stream_sequence=message.sequence, reason=refusal.kind.value
        )
