"""Records that wait in the stream: edges have handed them off, the database may not have them.

Settlement acknowledges a record once it is stored, so all that can be missing from the database is
above the floor of its acknowledgements. Read before the database, and each known by its id, none
is missed and none counts twice, whatever settlement does meanwhile.
"""

from functools import partial

import msgspec
import nats.errors
import nats.js.errors
from nats.aio.client import Client

from contracts.contract import decode
from contracts.inference import INFERENCE_RECORDED, INFERENCE_RECORDS, InferenceRecord
from kit.single_flight import SingleFlight
from tier_cache.errors import StreamUnavailableError

_STREAM = INFERENCE_RECORDS.name
# Settlement's replicas share one consumer, which has its name.
_CONSUMER = INFERENCE_RECORDS.owner
_TIMEOUT_S = 2.0
# The server's number for it, beside those of a consumer and of a message that aren't there.
_NO_STREAM = 10_059


class WaitingRecords:
    """Reads the stream; every method raises StreamUnavailableError when it doesn't answer."""

    def __init__(self, client: Client) -> None:
        self._jetstream = client.jetstream(timeout=_TIMEOUT_S)
        # A floor of a moment ago is as good: what has been stored since is known by its id.
        self._floors = SingleFlight[None, int]()
        # A team's day and its spend are mostly missing together. Who joins a reading may miss what
        # is published while it ends, which is then as if published a moment later: see docs/limits.
        self._readings = SingleFlight[str, tuple[InferenceRecord, ...]]()

    async def of(self, team_id: str) -> tuple[InferenceRecord, ...]:
        """Return the team's records that may not be stored yet, some of them maybe twice."""
        return await self._readings.run(team_id, partial(self._read, team_id))

    async def _read(self, team_id: str) -> tuple[InferenceRecord, ...]:
        try:
            sequence = await self._floors.run(None, self._floor) + 1
            records = []
            while (found := await self._next(team_id, sequence)) is not None:
                at, payload = found
                record = _record(payload, team_id)
                if record is not None:
                    records.append(record)
                sequence = at + 1
        except (nats.errors.Error, TimeoutError) as error:
            raise StreamUnavailableError(type(error).__name__) from error
        return tuple(records)

    async def _floor(self) -> int:
        """Return the sequence up to which settlement has stored everything."""
        try:
            info = await self._jetstream.consumer_info(_STREAM, _CONSUMER)
        except nats.js.errors.NotFoundError as error:
            _see_stream(error)
            return 0  # it has never run
        return info.ack_floor.stream_seq if info.ack_floor else 0

    async def _next(self, team_id: str, sequence: int) -> tuple[int, bytes] | None:
        """Return the team's first record from a sequence on, and its own; None: there is none.

        Asked of the stream's leader: another replica may not have the newest.
        """
        subject = INFERENCE_RECORDED.subject_for(team_id)
        try:
            found = await self._jetstream.get_msg(_STREAM, sequence, subject, next=True)
        except nats.js.errors.NotFoundError as error:
            _see_stream(error)
            return None
        return found.seq or sequence, found.data or b""


def _see_stream(error: nats.js.errors.NotFoundError) -> None:
    """Let pass what is said of a consumer or a message; without the stream nobody can tell.

    Raises:
        NotFoundError: it is the stream that isn't there.

    """
    if error.err_code == _NO_STREAM:
        raise error


def _record(payload: bytes, team_id: str) -> InferenceRecord | None:
    """Return a message's record; None: settlement makes a dead letter of it."""
    try:
        record = decode(payload, InferenceRecord)
    except msgspec.MsgspecError:
        return None
    if record.team_id != team_id or "\0" in record.inference_id:
        return None
    # The longest of its texts, and nobody asks for it here.
    return msgspec.structs.replace(record, usage_reported=None)
