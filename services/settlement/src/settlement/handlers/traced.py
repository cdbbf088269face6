"""What a trace hears of its records: stored, and charged.

A record that came with a `traceparent` gets a span when its row is committed, and another when its
charge is. The second is told by the process that stored the record, as long as it runs: who charges
knows the row alone. Where replicas share the work, another may be quicker, and it is missing.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nats.aio.msg import Msg

from contracts.contract import TRACEPARENT
from kit.clock import Clock
from kit.traces.tracer import Attributes, Kind, Past, Tracer
from settlement.domain.classification import Pending
from settlement.domain.settling import AccountBatch
from settlement.store.records import Arrival, Key

_MOST_PENDING = 10_000
"""Records that are remembered until they are charged; of more, the oldest are forgotten."""
_US_PER_S = 1_000_000


@dataclass(frozen=True, slots=True)
class _Stored:
    """A record that waits for its charge, since an instant of this machine's wall clock."""

    parent: str
    stored_at_us: int
    about: Attributes


class RecordTraces:
    """Remembers which records belong to which trace."""

    def __init__(self, tracer: Tracer, clock: Clock) -> None:
        self._tracer = tracer
        self._clock = clock
        self._pending: OrderedDict[int, _Stored] = OrderedDict()

    def stored(self, taken: Iterable[tuple[Msg, Arrival]], new: Mapping[Key, int]) -> None:
        """Tell of records whose rows have just been committed; `new` has their numbers.

        Such a span begins when the stream had the record, by the stream's clock.
        """
        now_us = self._clock.now_us()
        untold = dict(new)
        for message, arrival in taken:
            parent = (message.headers or {}).get(TRACEPARENT)
            record_id = untold.pop(arrival.key, None)
            if parent is None or record_id is None:
                continue
            about = _about(arrival)
            span = Past(
                name="store record",
                kind=Kind.CONSUMER,
                started_us=int(message.metadata.timestamp.timestamp() * _US_PER_S),
                ended_us=now_us,
                attributes={**about, "quotagate.state": type(arrival.outcome).__name__.lower()},
            )
            self._tracer.tell(span, parent)
            if isinstance(arrival.outcome, Pending):
                self._remember(record_id, _Stored(parent, now_us, about))

    def settled(self, batches: Sequence[AccountBatch]) -> None:
        """Tell of records whose charges have just been committed, or that are held instead."""
        now_us = self._clock.now_us()
        for batch in batches:
            for charge in batch.charges:
                self._tell(charge.record_id, now_us, None)
            for record_id, reason in batch.held.items():
                self._tell(record_id, now_us, reason.value)

    def _tell(self, record_id: int, now_us: int, held: str | None) -> None:
        known = self._pending.pop(record_id, None)
        if known is None:
            return
        span = Past(
            name="settle record",
            kind=Kind.INTERNAL,
            started_us=known.stored_at_us,
            ended_us=now_us,
            attributes={**known.about, "quotagate.state": "held" if held else "settled"},
            error_type=held,
        )
        self._tracer.tell(span, known.parent)

    def _remember(self, record_id: int, stored: _Stored) -> None:
        self._pending[record_id] = stored
        if len(self._pending) > _MOST_PENDING:
            self._pending.popitem(last=False)


def _about(arrival: Arrival) -> Attributes:
    record = arrival.record
    return {
        "quotagate.team_id": record.team_id,
        "quotagate.inference_id": record.inference_id,
        "quotagate.attempt_no": record.attempt_no,
    }
