"""One attempt: note it, send it, take in or relay what comes back, account for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from contracts.admission import LimitState
from contracts.inference import InferenceRecord, Outcome
from edge_proxy.clients.provider import Exchange
from edge_proxy.domain import headers, upstream
from edge_proxy.domain.adapters.adapter import Api
from edge_proxy.domain.inference import Attempt, Leg
from edge_proxy.domain.problems import HAND_OFF_UNAVAILABLE, Problem
from edge_proxy.domain.ratelimit_headers import rate_limit_headers
from edge_proxy.domain.retries import asked_wait_s
from edge_proxy.domain.upstream import Failure, Reply, cause_of, reply_of
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
from edge_proxy.handlers.plan import Plan
from edge_proxy.handlers.streaming import StreamRelay
from kit import log
from kit.crashpoint import crash_at

_MAX_ERROR_BYTES = 1024**2
_US_PER_S = 1_000_000
_logger = log.get(__name__)


@dataclass(frozen=True, slots=True)
class Whole:
    """A success that isn't a stream; the client hasn't been answered yet."""

    reply: Reply
    limits: Mapping[str, str] = field(default_factory=dict)
    """The rate-limit headers, which are of this moment; the reply is for ever."""


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """A success that the client must not hear of: its record waits in the spool."""

    reply: Reply
    record: InferenceRecord


@dataclass(frozen=True, slots=True)
class Relayed:
    """A stream that the client has been given, as far as it went."""

    outcome: Outcome


Result = Whole | Unrecorded | Relayed | Failure


class Dispatch:
    """Makes attempts of one admitted request."""

    def __init__(self, edge: Edge, client: Client, plan: Plan) -> None:
        self._edge = edge
        self._client = client
        self._plan = plan
        self._shape = plan.inference.endpoint.shape

    async def attempt(self, attempt_no: int, leg: Leg) -> Result:
        """Make one attempt and account for it."""
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
            return Failure(reply_of(HAND_OFF_UNAVAILABLE, self._shape))
        crash_at("edge.noted")
        try:
            return await self._dispatch(attempt)
        finally:
            if not attempt.ended:
                # A fault of ours, or told to leave now: what the provider did is not known here.
                await self._edge.accounting.end(attempt, Outcome.UNKNOWN)

    async def _dispatch(self, attempt: Attempt) -> Result:
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
                return await self._failed(attempt, problem, cause_of(problem, None))
            if not upstream.is_success(exchange.status):
                return await self._refused(attempt, exchange)
            if attempt.inference.streaming and headers.is_event_stream(exchange.headers):
                scanner = api.scanner(outgoing, self._edge.settings.max_event_bytes)
                relay = StreamRelay(self._edge, self._client, attempt, exchange, scanner)
                return Relayed(await relay.run(self._stream_headers(attempt, exchange)))
            return await self._take_in(attempt, exchange, api)
        finally:
            self._edge.in_flight.waited(exchange)
            await exchange.close()

    async def _open(self, attempt: Attempt, exchange: Exchange) -> Problem | None:
        try:
            await exchange.open()
        except EdgeError as error:
            if isinstance(error, UnreachableError):
                # A connection refused, a certificate that nobody vouches for: only this tells.
                provider = attempt.leg.target.provider.name
                _logger.warning("provider not reached", provider=provider, detail=str(error))
            return problem_of(error)
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
        if problem is None:
            reply = Reply(exchange.status, {**passed, **upstream.FROM_UPSTREAM}, body)
        else:
            passed.pop("content-type", None)
            reply = reply_of(problem.with_headers({**passed, **problem.headers}), self._shape)
        attempt.failure = cause_of(problem, exchange.status)
        await self._end(attempt, Outcome.FAILED, may_be_followed=True)
        now_s = self._edge.clock.now_us() / _US_PER_S
        return Failure(reply, attempt.failure, asked_wait_s(exchange.headers, now_s))

    async def _take_in(self, attempt: Attempt, exchange: Exchange, api: Api) -> Result:
        try:
            body = await exchange.whole(self._edge.settings.max_answer_bytes)
        except EdgeError as error:
            problem = problem_of(error)
            return await self._failed(attempt, problem, cause_of(problem, None))
        answer = api.read_answer(body)
        if answer is None:
            return await self._failed(attempt, upstream.INVALID_ANSWER, "invalid_answer")
        attempt.answer = answer
        reply = Reply(exchange.status, headers.to_client(exchange.headers.items()), body)
        accounted = await self._end(attempt, Outcome.SUCCEEDED)
        if not accounted.durable:
            return Unrecorded(reply, accounted.record)
        return Whole(reply, self._limit_headers(accounted.limits))

    async def _failed(self, attempt: Attempt, problem: Problem, cause: str) -> Failure:
        attempt.failure = cause
        await self._end(attempt, Outcome.FAILED, may_be_followed=True)
        return Failure(reply_of(problem, self._shape), cause)

    async def _end(
        self, attempt: Attempt, outcome: Outcome, *, may_be_followed: bool = False
    ) -> Accounted:
        attempt.client_gone = self._client.gone
        ended = await self._edge.accounting.end(attempt, outcome, may_be_followed=may_be_followed)
        await self._edge.stored_responses.remember(attempt)
        return ended

    def _stream_headers(self, attempt: Attempt, exchange: Exchange) -> Mapping[str, str]:
        """Return a stream's headers, which leave before anything is known but preflight's state."""
        return {
            "content-type": "text/event-stream",
            **headers.to_client(exchange.headers.items()),
            **self._limit_headers(self._plan.limits),
            **self._plan.headers(attempt.attempt_no),
            # Proxies on the way must not collect a stream before they pass it on.
            "cache-control": "no-cache",
            "x-accel-buffering": "no",
        }

    def _limit_headers(self, limits: LimitState | None) -> Mapping[str, str]:
        if limits is None:
            return {}
        of_the_api = self._shape.limit_headers(limits, self._edge.clock.now_us())
        return {**rate_limit_headers(limits), **of_the_api}


def problem_of(error: EdgeError) -> Problem:
    """Return what a client is told of a provider that gave no answer."""
    if isinstance(error, UnreachableError):
        return upstream.UNREACHABLE
    if isinstance(error, ProviderTimeoutError):
        return upstream.TIMED_OUT
    if isinstance(error, AnswerTooLargeError):
        return upstream.ANSWER_TOO_LARGE
    return upstream.DISCONNECTED
