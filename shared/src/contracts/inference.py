"""The inference record: what the gateway observed of one attempt."""

from enum import StrEnum

from contracts.contract import Event, Message, Stream
from contracts.ids import AttemptNo, KeyId, TeamId
from contracts.usage import Usage


class Outcome(StrEnum):
    """How an attempt ended, as far as the gateway knows."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class UsageSource(StrEnum):
    """Where the usage of a record comes from. It is never estimated."""

    PROVIDER = "provider"
    MISSING = "missing"


class InferenceRecord(Message, frozen=True, kw_only=True):
    """One attempt that may have reached a provider. Times are unix microseconds, edge's clock."""

    inference_id: str
    attempt_no: AttemptNo
    team_id: TeamId
    api_key_id: KeyId
    provider: str
    model_asked: str
    outcome: Outcome
    usage_source: UsageSource
    started_at_us: int
    endpoint: str = "/v1/chat/completions"
    model_sent: str | None = None
    """The deployment's model: what the price is for."""
    model_served: str | None = None
    """What the provider says it used; None where it said nothing."""
    price_id: str | None = None
    """Pinned at preflight. None only where the record was rebuilt without it."""
    tier_id: str | None = None
    usage: Usage | None = None
    """None when `usage_source` is `missing`: unknown spend, not zero."""
    usage_reported: str | None = None
    """The provider's usage object as JSON text, with the fields that we don't know."""
    provider_request_id: str | None = None
    streaming: bool = False
    client_gone: bool = False
    first_byte_at_us: int | None = None
    finished_at_us: int | None = None
    status_code: int | None = None
    """The provider's HTTP status; None where no response arrived."""
    trace_id: str | None = None

    @property
    def message_id(self) -> str:
        """The `Nats-Msg-Id` by which the stream drops a repeated publish."""
        return f"{self.inference_id}:{self.attempt_no}"


INFERENCE_RECORDS = Stream(
    name="INFERENCE_RECORDS",
    subjects=("quota.v1.inference.recorded.*",),
    owner="settlement",
    summary="Every attempt's record until settlement trims what it settled long ago.",
)

INFERENCE_RECORDED = Event(
    subject="quota.v1.inference.recorded.{team_id}",
    message=InferenceRecord,
    emitted_by=("edge-proxy",),
    stream=INFERENCE_RECORDS.name,
    summary="An attempt was observed; acknowledged before its client is told of success.",
    is_traced=True,
)
