"""The stream of dead letters, read for which messages of the record stream it keeps."""

import msgspec
import nats.js.errors
from nats.aio.client import Client

from contracts.contract import decode
from contracts.dead import DEAD_LETTERED, DEAD_LETTERS, DeadLetter
from contracts.inference import INFERENCE_RECORDS
from settlement.store.failures import named_stream_failures

_TIMEOUT_S = 5.0


class DeadLetterStream:
    """Dead letters of the record stream. Each is read once and remembered by its sequence."""

    def __init__(self, client: Client, consumer: str) -> None:
        self._jetstream = client.jetstream(timeout=_TIMEOUT_S)
        self._subject = DEAD_LETTERED.subject_for(consumer)
        self._next = 1
        self._sequences: set[int] = set()

    async def has(self, sequence: int) -> bool:
        """Return whether there is, or was since our start, a dead letter of this message.

        Raises:
            StreamUnavailableError: no answer.

        """
        await self._read_on()
        return sequence in self._sequences

    async def _read_on(self) -> None:
        while True:
            with named_stream_failures():
                try:
                    raw = await self._jetstream.get_msg(
                        DEAD_LETTERS.name, self._next, self._subject, direct=True, next=True
                    )
                except nats.js.errors.NotFoundError:
                    return
            self._next = (raw.seq or self._next) + 1
            try:
                letter = decode(raw.data or b"", DeadLetter)
            except msgspec.MsgspecError:
                continue  # no letter of ours, so it accounts for nothing
            if letter.stream == INFERENCE_RECORDS.name:
                self._sequences.add(letter.stream_sequence)
