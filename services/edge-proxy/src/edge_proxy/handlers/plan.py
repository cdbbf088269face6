"""An inference that was admitted: where its attempts may go, and under which numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from contracts.admission import Lease, LimitReason, LimitState, Policy
from edge_proxy.domain.asked import Asked
from edge_proxy.domain.inference import Inference, Leg
from edge_proxy.domain.ratelimit_headers import shadow_header
from edge_proxy.domain.retries import RetryPolicy
from edge_proxy.store.held_key import HeldKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What stays the same for all attempts of one request."""

    inference: Inference
    asked: Asked
    policy: Policy
    limits: LimitState | None
    """After preflight."""
    legs: tuple[Leg, ...]
    """Where attempts may go, at least one."""
    retry: RetryPolicy
    shadowed: tuple[LimitReason, ...] = ()
    """Limits in shadow mode that would have refused it."""
    lease: Lease | None = None
    """Its place among the team's inferences in flight, for all its attempts."""
    windows: Mapping[str, str] = field(default_factory=dict)
    """The headers of its endpoint's windows."""
    held: HeldKey | None = None
    """Its idempotency key, where the client sent one."""

    def headers(self, attempt_no: int) -> dict[str, str]:
        """Return the headers of every answer after a dispatch, of which this was the last."""
        return {**self.names(attempt_no), **self.windows, **shadow_header(self.shadowed)}

    def names(self, attempt_no: int) -> dict[str, str]:
        """Return those of the headers that stay true for ever."""
        return {
            "x-inference-id": self.inference.inference_id,
            "x-quotagate-attempts": str(attempt_no),
        }
