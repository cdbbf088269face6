"""Attempts of one inference: dispatch, relay the answer, account for each."""

from collections.abc import Mapping
from dataclasses import dataclass

from contracts.admission import Lease, LimitReason, LimitState, Policy
from contracts.inference import Outcome
from edge_proxy.clients.provider import Exchange
from edge_proxy.domain import headers, upstream
from edge_proxy.domain.adapters.adapter import Api
from edge_proxy.domain.asked import Asked
from edge_proxy.domain.inference import Attempt, Inference, Leg
from edge_proxy.domain.problems import HAND_OFF_UNAVAILABLE, NOT_RECORDED, Problem
from edge_proxy.domain.ratelimit_headers import rate_limit_headers, shadow_header
from edge_proxy.domain.shapes import Shape
from edge_proxy.errors import (
    AnswerTooLargeError,
    DataDirectoryError,
    EdgeError,
    ProviderTimeoutError,
    UnreachableError,
)
from edge_proxy.handlers.accounting import Accounted
from edge_proxy.handlers.client import Client
from edge_proxy.handlers.edge import Edge
from edge_proxy.handlers.streaming import StreamRelay
from kit import log
from kit.crashpoint import crash_at

_MAX_ERROR_BYTES = 1024**2
_logger = log.get(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An inference that was admitted."""

    inference: Inference
    asked: Asked
    policy: Policy
    limits: LimitState | None
    """After preflight."""
    legs: tuple[Leg, ...]
    """Where attempts may go, at least one."""
    shadowed: tuple[LimitReason, ...] = ()
    """Limits in shadow mode that would have refused it."""
    lease: Lease | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """What a client gets when this attempt was the last one."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def _failure(problem: Problem, shape: Shape) -> Failure:
    answer = {**problem.headers, "content-type": "application/json"}
    return Failure(problem.status, answer, shape.error(problem))


class Attempts:
    """Makes the attempts of one inference and answers its client, once."""

    def __init__(self, edge: Edge, client: Client, plan: Plan) -> None:
        self._edge = edge
        self._client = client
        self._plan = plan
        self._shape = plan.inference.endpoint.shape
        self._id_header = {
            "x-inference-id": plan.inference.inference_id,
            **shadow_header(plan.shadowed),
        }

    async def run(self) -> None:
        """Try the first leg; answer with what came of it."""
        failure = await self._try(attempt_no=1, leg=self._plan.legs[0])
        if failure is not None:
            await self._client.answer(
                failure.status, {**failure.headers, **self._id_header}, failure.body
            )

    async def _try(self, *, attempt_no: int, leg: Leg) -> Failure | None:
        """Make one attempt; None: the client has been answered."""
        attempt = Attempt(
            inference=self._plan.inference,
            attempt_no=attempt_no,
            leg=leg,
            policy=self._plan.policy,
            shadowed=self._plan.shadowed,
            lease=self._plan.lease,
            started_at_us=self._edge.clock.now_us(),
        )
        crash_at("edge.admitted")
        try:
            self._edge.accounting.begin(attempt)
        except DataDirectoryError:
            _logger.exception("attempt not noted")
            return _failure(HAND_OFF_UNAVAILABLE, self._shape)
        crash_at("edge.noted")
        try:
            return await self._dispatch(attempt)
        finally:
            if not attempt.ended:
                # A fault of ours, or told to leave now: what the provider did is not known here.
                await self._edge.accounting.end(attempt, Outcome.UNKNOWN)

    async def _dispatch(self, attempt: Attempt) -> Failure | None:
        target = attempt.leg.target
        provider = target.provider
        api = provider.adapter.apis[attempt.inference.endpoint.path]
        outgoing = api.outgoing(self._plan.asked, target.model)
        exchange = self._edge.providers.exchange(
            target,
            api.path,
            headers.to_provider(self._client.headers),
            outgoing.body,
        )
        self._edge.in_flight.waits(exchange)
        try:
            problem = await self._open(attempt, exchange)
            if problem is not None:
                return await self._failed(attempt, problem)
            if not upstream.is_success(exchange.status):
                return await self._refused(attempt, exchange)
            if attempt.inference.streaming and headers.is_event_stream(exchange.headers):
                scanner = api.scanner(outgoing, self._edge.settings.max_event_bytes)
                relay = StreamRelay(self._edge, self._client, attempt, exchange, scanner)
                await relay.run(self._stream_headers(exchange))
                return None
            return await self._relay_whole(attempt, exchange, api)
        finally:
            self._edge.in_flight.waited(exchange)
            await exchange.close()

    async def _open(self, attempt: Attempt, exchange: Exchange) -> Problem | None:
        try:
            await exchange.open()
        except EdgeError as error:
            return _problem_of(error)
        attempt.first_byte_at_us = self._edge.clock.now_us()
        attempt.status_code = exchange.status
        attempt.provider_request_id = headers.provider_request_id(exchange.headers)
        return None

    async def _refused(self, attempt: Attempt, exchange: Exchange) -> Failure:
        """Read a provider's error, and show it or what it means here."""
        try:
            body = await exchange.whole(_MAX_ERROR_BYTES)
        except EdgeError:
            body = b""
        problem = upstream.shown_instead(exchange.status, self._shape.error_code(body))
        if problem in (upstream.AUTH_FAILED, upstream.QUOTA_EXHAUSTED):
            _logger.error(
                "provider refuses the gateway",
                provider=attempt.leg.target.provider.name,
                status=exchange.status,
            )
        if problem is None and not self._shape.is_error(body):
            problem = upstream.unreadable_refusal(exchange.status)
        passed = headers.to_client(exchange.headers.items(), error=True)
        if problem is not None:
            passed.pop("content-type", None)
            return await self._failed(attempt, problem.with_headers({**passed, **problem.headers}))
        await self._end(attempt, Outcome.FAILED)
        return Failure(exchange.status, {**passed, **upstream.FROM_UPSTREAM}, body)

    async def _relay_whole(self, attempt: Attempt, exchange: Exchange, api: Api) -> Failure | None:
        try:
            body = await exchange.whole(self._edge.settings.max_answer_bytes)
        except EdgeError as error:
            return await self._failed(attempt, _problem_of(error))
        answer = api.read_answer(body)
        if answer is None:
            return await self._failed(attempt, upstream.INVALID_ANSWER)
        attempt.answer = answer
        accounted = await self._end(attempt, Outcome.SUCCEEDED)
        if not accounted.durable:
            return _failure(NOT_RECORDED, self._shape)
        limits = self._limit_headers(accounted.limits)
        passed = headers.to_client(exchange.headers.items())
        await self._client.answer(exchange.status, {**passed, **limits, **self._id_header}, body)
        return None

    async def _failed(self, attempt: Attempt, problem: Problem) -> Failure:
        await self._end(attempt, Outcome.FAILED)
        return _failure(problem, self._shape)

    async def _end(self, attempt: Attempt, outcome: Outcome) -> Accounted:
        attempt.client_gone = self._client.gone
        return await self._edge.accounting.end(attempt, outcome)

    def _stream_headers(self, exchange: Exchange) -> Mapping[str, str]:
        """Return a stream's headers, which leave before anything is known but preflight's state."""
        return {
            "content-type": "text/event-stream",
            **headers.to_client(exchange.headers.items()),
            **self._limit_headers(self._plan.limits),
            **self._id_header,
            # Proxies on the way must not collect a stream before they pass it on.
            "cache-control": "no-cache",
            "x-accel-buffering": "no",
        }

    def _limit_headers(self, limits: LimitState | None) -> Mapping[str, str]:
        if limits is None:
            return {}
        of_the_api = self._shape.limit_headers(limits, self._edge.clock.now_us())
        return {**rate_limit_headers(limits), **of_the_api}


def _problem_of(error: EdgeError) -> Problem:
    if isinstance(error, UnreachableError):
        return upstream.UNREACHABLE
    if isinstance(error, ProviderTimeoutError):
        return upstream.TIMED_OUT
    if isinstance(error, AnswerTooLargeError):
        return upstream.ANSWER_TOO_LARGE
    return upstream.DISCONNECTED
