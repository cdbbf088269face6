"""One logical call of a client, and its attempts at providers."""

from dataclasses import dataclass

from contracts.admission import KeyLimits, Lease, LimitReason, Policy
from contracts.inference import InferenceRecord, Outcome
from contracts.usage import Price
from contracts.windows import Window
from edge_proxy.domain.adapters.answer import NO_ANSWER, Answer
from edge_proxy.domain.endpoints import Endpoint
from edge_proxy.domain.routes import Target

_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls, once its key was found right."""

    team_id: str
    key_id: str
    allowed_models: tuple[str, ...] | None
    """None: every model of the routes."""
    limits: KeyLimits | None = None
    """What the key has of its own; admission judges by it."""

    def may_use(self, model: str) -> bool:
        """Say whether the key allows a model."""
        return self.allowed_models is None or model in self.allowed_models


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """What stays the same for all attempts."""

    inference_id: str
    caller: Caller
    endpoint: Endpoint
    model: str
    streaming: bool
    trace_id: str
    input_bytes: int = 0
    """Of the body as it was sent."""
    windows: tuple[Window, ...] = ()
    """Those that its endpoint's policy has for keys."""
    first_attempt_no: int = 1
    """More where this request continues an inference that began with another."""

    @property
    def estimated_input_tokens(self) -> int:
        """Return what the input has at least: a token for every four bytes of the body."""
        return -(-self.input_bytes // _BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """Where an attempt goes, and the price that preflight pinned for it."""

    target: Target
    price: Price


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One dispatch, as it is observed. Times are unix microseconds of this process's clock."""

    inference: Inference
    attempt_no: int
    leg: Leg
    policy: Policy
    """The numbers it was admitted under."""
    started_at_us: int
    first_byte_at_us: int | None = None
    status_code: int | None = None
    """The provider's; None until its answer began."""
    provider_request_id: str | None = None
    shadowed: tuple[LimitReason, ...] = ()
    """Limits in shadow mode that would have refused it."""
    lease: Lease | None = None
    """Its place among the team's calls in flight, where those are limited."""
    answer: Answer = NO_ANSWER
    failure: str | None = None
    """What a route's policy would call it; None: it hasn't failed, or nobody knows how."""
    client_gone: bool = False
    ended: bool = False
    """Its accounting has begun."""

    def record(self, outcome: Outcome, finished_at_us: int | None) -> InferenceRecord:
        """Return the attempt's record; without an end where nobody knows it."""
        inference = self.inference
        return InferenceRecord(
            inference_id=inference.inference_id,
            attempt_no=self.attempt_no,
            team_id=inference.caller.team_id,
            api_key_id=inference.caller.key_id,
            provider=self.leg.target.provider.name,
            model_asked=inference.model,
            outcome=outcome,
            usage_source=self.answer.usage.source,
            started_at_us=self.started_at_us,
            endpoint=inference.endpoint.path,
            model_sent=self.leg.target.model,
            model_served=self.answer.model_served,
            price_id=self.leg.price.price_id,
            tier_id=self.policy.tier_id,
            usage=self.answer.usage.usage,
            usage_reported=self.answer.usage.reported,
            provider_request_id=self.provider_request_id,
            streaming=inference.streaming,
            client_gone=self.client_gone,
            first_byte_at_us=self.first_byte_at_us,
            finished_at_us=finished_at_us,
            status_code=self.status_code,
            trace_id=inference.trace_id,
        )
