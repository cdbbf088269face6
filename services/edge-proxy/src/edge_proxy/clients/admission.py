"""Admission: may this team call now, and what an attempt really used."""

from dataclasses import dataclass
from typing import TypedDict

from prometheus_client import Counter, Histogram

from contracts.admission import (
    LEASE_RELEASE,
    LEASE_RENEW,
    POSTFLIGHT,
    PREFLIGHT,
    Decision,
    Deployment,
    LeaseReply,
    LeaseRequest,
    LimitState,
    PostflightRequest,
    PreflightReply,
    PreflightRequest,
)
from contracts.contract import RequestReply
from contracts.errors import ErrorCode
from contracts.usage import Usage
from contracts.windows import WINDOWS, Window, WindowsReply, WindowsRequest
from edge_proxy.domain.inference import Attempt, Inference, Leg
from edge_proxy.domain.routes import Route
from kit import log
from kit.bus.errors import BusError, RefusedError
from kit.bus.requests import Requester
from kit.clock import Clock
from kit.health import CheckResult
from kit.metrics import LATENCY_BUCKETS_S

_US_PER_MS = 1_000
_US_PER_S = 1_000_000
_MS_PER_S = 1_000
_PING_TIMEOUT_S = 0.5
_LONG_AGO_US = 1

_logger = log.get(__name__)
_PREFLIGHT_SECONDS = Histogram(
    "quotagate_preflight_seconds",
    "Seconds the edge waited for admission's decision.",
    buckets=LATENCY_BUCKETS_S,
)
_POSTFLIGHT_SECONDS = Histogram(
    "quotagate_postflight_seconds",
    "Seconds the edge waited for admission to charge an attempt.",
    buckets=LATENCY_BUCKETS_S,
)
_POSTFLIGHT_FAILURES = Counter(
    "quotagate_postflight_failures_total",
    "Postflights without an answer: their charge is in the ledger, perhaps not in the caches.",
)

_LEASE_FAILURES = Counter(
    "quotagate_lease_failures_total",
    "Renewals and releases of leases without an answer; a lease expires by itself.",
    ["asked"],
)


@dataclass(frozen=True, slots=True)
class AdmissionTimeOuts:
    """How long the edge waits for admission, in milliseconds."""

    preflight_ms: int
    postflight_ms: int


class _About(TypedDict):
    """What every preflight says of an inference."""

    team_id: str
    key_id: str
    inference_id: str
    model: str
    deadline_us: int


class AdmissionClient:
    """Asks admission. Every question is asked once: repeated, it would count twice."""

    def __init__(self, requester: Requester, clock: Clock, timeouts: AdmissionTimeOuts) -> None:
        self._requester = requester
        self._clock = clock
        self._timeouts = timeouts

    async def preflight(self, inference: Inference, route: Route) -> PreflightReply:
        """Ask for the decision on an inference.

        Raises:
            RefusedError: with the code `unknown_team`, the key's team is gone.
            BusError: no decision; nothing may be sent to a provider.

        """
        return await self._preflight(
            PreflightRequest(
                **self._about(inference),
                deployments=route.deployments,
                attempt_no=inference.first_attempt_no,
                estimated_input_tokens=inference.estimated_input_tokens,
                windows=inference.windows,
                key_limits=inference.caller.limits,
            )
        )

    async def may_go_on(self, inference: Inference, attempt_no: int, leg: Leg) -> bool:
        """Ask before an attempt that isn't the first whether the team may still pay.

        Moves nothing: the request was counted once, before the first attempt.

        Raises:
            BusError: no decision; nothing may be sent to a provider.

        """
        target = leg.target
        deployment = Deployment(provider=target.provider.name, model=target.model)
        reply = await self._preflight(
            PreflightRequest(
                **self._about(inference),
                deployments=(deployment,),
                attempt_no=attempt_no,
                further=True,
            )
        )
        return reply.decision is Decision.ALLOWED

    def _about(self, inference: Inference) -> _About:
        return {
            "team_id": inference.caller.team_id,
            "key_id": inference.caller.key_id,
            "inference_id": inference.inference_id,
            "model": inference.model,
            "deadline_us": self._clock.now_us() + self._timeouts.preflight_ms * _US_PER_MS,
        }

    async def _preflight(self, request: PreflightRequest) -> PreflightReply:
        started_us = self._clock.monotonic_us()
        try:
            return await self._requester.ask(
                PREFLIGHT, request, self._timeouts.preflight_ms / _MS_PER_S
            )
        finally:
            waited_us = self._clock.monotonic_us() - started_us
            _PREFLIGHT_SECONDS.observe(waited_us / _US_PER_S)

    async def postflight(self, attempt: Attempt, usage: Usage) -> LimitState | None:
        """Charge an attempt's usage; return the limits after it, None where nobody can tell.

        A charge whose outcome is unknown is not repeated: settlement has the exact one.
        """
        timeout_ms = self._timeouts.postflight_ms
        started_us = self._clock.monotonic_us()
        inference = attempt.inference
        try:
            reply = await self._requester.ask(
                POSTFLIGHT,
                PostflightRequest(
                    team_id=inference.caller.team_id,
                    inference_id=inference.inference_id,
                    attempt_no=attempt.attempt_no,
                    usage=usage,
                    policy=attempt.policy,
                    price=attempt.leg.price,
                    deadline_us=self._clock.now_us() + timeout_ms * _US_PER_MS,
                    key_id=inference.caller.key_id,
                    model=inference.model,
                    shadowed=attempt.shadowed,
                    lease=None if attempt.lease is None else attempt.lease.name,
                ),
                timeout_ms / _MS_PER_S,
            )
        except BusError as error:
            _POSTFLIGHT_FAILURES.inc()
            _logger.warning(
                "postflight failed",
                error=type(error).__name__,
                team_id=inference.caller.team_id,
                inference_id=inference.inference_id,
                attempt_no=attempt.attempt_no,
            )
            return None
        finally:
            waited_us = self._clock.monotonic_us() - started_us
            _POSTFLIGHT_SECONDS.observe(waited_us / _US_PER_S)
        return reply.limits

    async def judge_windows(self, windows: tuple[Window, ...], **whose: str) -> WindowsReply:
        """Ask whether a request without a preflight may come.

        `whose` is a `team_id` and a `key_id`, or an `address`.

        Raises:
            BusError: nobody judged.

        """
        timeout_ms = self._timeouts.preflight_ms
        deadline_us = self._clock.now_us() + timeout_ms * _US_PER_MS
        request = WindowsRequest(windows=windows, deadline_us=deadline_us, **whose)
        return await self._requester.ask(WINDOWS, request, timeout_ms / _MS_PER_S)

    async def renew_lease(self, team_id: str, name: str) -> None:
        """Hold a lease on; one that isn't renewed expires."""
        await self._on_lease(LEASE_RENEW, team_id, name)

    async def release_lease(self, team_id: str, name: str) -> None:
        """Give a lease back; one that isn't expires."""
        await self._on_lease(LEASE_RELEASE, team_id, name)

    async def _on_lease(
        self, contract: RequestReply[LeaseRequest, LeaseReply], team_id: str, name: str
    ) -> None:
        timeout_ms = self._timeouts.postflight_ms
        request = LeaseRequest(
            team_id=team_id,
            lease=name,
            deadline_us=self._clock.now_us() + timeout_ms * _US_PER_MS,
        )
        try:
            await self._requester.ask(contract, request, timeout_ms / _MS_PER_S)
        except BusError as error:
            _LEASE_FAILURES.labels(contract.endpoint).inc()
            _logger.warning(
                "lease not changed",
                asked=contract.endpoint,
                error=type(error).__name__,
                team_id=team_id,
                lease=name,
            )

    async def check(self) -> CheckResult:
        """Return None if admission decides, else why not.

        Asks a question whose deadline passed long ago: admission's refusal of it takes the way of
        a real one and moves nothing.
        """
        try:
            await self._requester.ask(
                PREFLIGHT,
                PreflightRequest(
                    team_id="readiness",
                    key_id="readiness",
                    inference_id="readiness",
                    model="readiness",
                    deployments=(),
                    deadline_us=_LONG_AGO_US,
                ),
                _PING_TIMEOUT_S,
            )
        except RefusedError as error:
            return None if error.code is ErrorCode.DEADLINE_EXCEEDED else error.code.value
        except BusError as error:
            return type(error).__name__
        return None
