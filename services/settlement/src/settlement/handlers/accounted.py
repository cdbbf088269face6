"""Whether a consumed message under which no record is stored has had all it needs.

It may be a repetition of a record that is stored under another sequence, or a dead letter. It may
also be a record that the database had before it was restored to an earlier moment; then the stream
has the only copy.
"""

from settlement.domain.reading import Refusal, read
from settlement.store.dead_letter_stream import DeadLetterStream
from settlement.store.record_stream import RecordStream
from settlement.store.records import RecordStore


class Accounted:
    """Knows of every message what became of it. Only for messages that were acknowledged."""

    def __init__(
        self, records: RecordStore, stream: RecordStream, dead_letters: DeadLetterStream
    ) -> None:
        self._records = records
        self._stream = stream
        self._dead_letters = dead_letters

    async def needs_no_more(self, sequence: int) -> bool:
        """Return whether the stream may forget the message.

        Raises:
            SettlementError: a store didn't answer.

        """
        found = await self._stream.message(sequence)
        if found is None or found.sequence != sequence:
            return True  # somebody removed it
        record = read(found.payload, found.subject)
        if isinstance(record, Refusal):
            return True  # a dead letter was kept before it was acknowledged
        return await self._records.is_stored(
            (record.inference_id, record.attempt_no)
        ) or await self._dead_letters.has(sequence)
