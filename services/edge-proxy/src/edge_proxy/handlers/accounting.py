"""What an attempt's end takes: charge the limits, hand the record over.

In this order: a record is never settled before its rough debit was applied.
"""

from dataclasses import dataclass

from prometheus_client import Counter, Histogram

from contracts.admission import Lease, LimitState
from contracts.inference import InferenceRecord, Outcome
from edge_proxy.clients.admission import AdmissionClient
from edge_proxy.clients.hand_off import HandOff
from edge_proxy.clients.leases import Leases
from edge_proxy.domain.inference import Attempt, Inference
from edge_proxy.domain.spans import span_of
from edge_proxy.store.journal import Journal
from kit import log
from kit.clock import Clock
from kit.crashpoint import crash_at
from kit.metrics import LATENCY_BUCKETS_S
from kit.traces.tracer import Tracer

_US_PER_S = 1_000_000
_PROVIDER_BUCKETS_S = (*LATENCY_BUCKETS_S, 120.0, 300.0, 600.0)

_logger = log.get(__name__)
_ATTEMPTS = Counter(
    "quotagate_attempts_total", "Attempts by adapter and outcome.", ["adapter", "outcome"]
)
_PROVIDER_SECONDS = Histogram(
    "quotagate_provider_seconds",
    "Seconds from an attempt's dispatch to its end.",
    ["adapter", "outcome"],
    buckets=_PROVIDER_BUCKETS_S,
)
_FIRST_BYTE_SECONDS = Histogram(
    "quotagate_provider_first_byte_seconds",
    "Seconds from an attempt's dispatch to the first byte of its answer.",
    ["adapter"],
    buckets=_PROVIDER_BUCKETS_S,
)
_USAGE = Counter(
    "quotagate_usage_total",
    "Successful attempts by adapter and what their usage was worth: found, missing, unreadable,"
    " absurd.",
    ["adapter", "verdict"],
)


@dataclass(frozen=True, slots=True)
class Accounted:
    """How the accounting of an attempt went."""

    durable: bool
    """The stream has acknowledged the record; otherwise it waits in the spool."""
    limits: LimitState | None
    """After the charge; None where nothing was charged or nobody can tell."""
    record: InferenceRecord


class Accounting:
    """Accounts for attempts."""

    def __init__(
        self,
        admission: AdmissionClient,
        hand_off: HandOff,
        journal: Journal,
        clock: Clock,
        tracer: Tracer | None,
    ) -> None:
        self._admission = admission
        self._leases = Leases(admission)
        self._hand_off = hand_off
        self._journal = journal
        self._clock = clock
        self._tracer = tracer

    def begin(self, attempt: Attempt) -> None:
        """Note an attempt before it is dispatched.

        Raises:
            DataDirectoryError: it couldn't be noted, so it must not be dispatched.

        """
        self._journal.begin(attempt.record(Outcome.UNKNOWN, finished_at_us=None))

    def hold(self, inference: Inference, lease: Lease | None) -> None:
        """Renew an inference's lease, if it has one, until its last attempt has ended."""
        if lease is not None:
            self._leases.begin(inference.caller.team_id, lease)

    async def let_go(self, inference: Inference, lease: Lease | None) -> None:
        """Give back the lease of an inference that is over, if no attempt's end did."""
        if lease is not None and await self._leases.stop(lease):
            await self._leases.give_back(inference.caller.team_id, lease)

    async def end(
        self, attempt: Attempt, outcome: Outcome, *, may_be_followed: bool = False
    ) -> Accounted:
        """Charge and record an attempt that is over; returns when its record is safe.

        One that may be followed by another used nothing that is known, and its lease goes on.
        """
        attempt.ended = True
        finished_at_us = self._clock.now_us()
        _observe(attempt, outcome, finished_at_us)
        if self._tracer is not None:
            self._tracer.tell(span_of(attempt, outcome, finished_at_us))
        crash_at("edge.answered")
        limits = None if may_be_followed else await self._charge(attempt)
        crash_at("edge.charged")
        record = attempt.record(outcome, finished_at_us)
        durable = await self._hand_off.deliver(record)
        crash_at("edge.recorded")
        return Accounted(durable=durable, limits=limits, record=record)

    async def _charge(self, attempt: Attempt) -> LimitState | None:
        """Charge what is known of an attempt's usage, and end its lease with it or without."""
        usage, lease = attempt.answer.usage.chargeable, attempt.lease
        if lease is not None:
            await self._leases.stop(lease)
        limits = await self._admission.postflight(attempt, usage) if usage is not None else None
        if lease is not None and limits is None:
            await self._leases.give_back(attempt.inference.caller.team_id, lease)
        return limits


def _observe(attempt: Attempt, outcome: Outcome, finished_at_us: int) -> None:
    adapter = attempt.leg.target.provider.adapter.name
    _ATTEMPTS.labels(adapter, outcome.value).inc()
    seconds = (finished_at_us - attempt.started_at_us) / _US_PER_S
    _PROVIDER_SECONDS.labels(adapter, outcome.value).observe(seconds)
    if attempt.first_byte_at_us is not None:
        waited_us = attempt.first_byte_at_us - attempt.started_at_us
        _FIRST_BYTE_SECONDS.labels(adapter).observe(waited_us / _US_PER_S)
    if outcome is Outcome.SUCCEEDED:
        _USAGE.labels(adapter, attempt.answer.usage.verdict.value).inc()
    else:
        _logger.warning(
            "attempt did not succeed",
            outcome=outcome.value,
            provider=attempt.leg.target.provider.name,
            status=attempt.status_code,
            team_id=attempt.inference.caller.team_id,
            inference_id=attempt.inference.inference_id,
            attempt_no=attempt.attempt_no,
        )
