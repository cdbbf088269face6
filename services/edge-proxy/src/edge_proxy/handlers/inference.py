"""A request for an inference, from its first byte to its plan."""

from dataclasses import replace

from prometheus_client import Counter
from starlette.types import Receive, Scope, Send

from contracts.admission import Decision, PreflightReply
from contracts.errors import ErrorCode
from edge_proxy.domain.asked import Asked, read
from edge_proxy.domain.endpoints import Endpoint
from edge_proxy.domain.inference import Caller, Inference
from edge_proxy.domain.judgement import legs, refusal, route_for
from edge_proxy.domain.policies import Windows
from edge_proxy.domain.problems import (
    CHECK_UNAVAILABLE,
    HAND_OFF_UNAVAILABLE,
    INVALID_API_KEY,
    STARTING,
    TOO_BUSY,
    Problem,
)
from edge_proxy.domain.ratelimit_headers import window_headers
from edge_proxy.domain.routes import Route
from edge_proxy.domain.spans import about_inference
from edge_proxy.domain.trace import trace_id
from edge_proxy.domain.upstream import Reply
from edge_proxy.handlers.attempts import Attempts
from edge_proxy.handlers.authenticate import authenticate
from edge_proxy.handlers.client import Client, ClientLeftError
from edge_proxy.handlers.edge import Edge, Gate
from edge_proxy.handlers.idempotency import hold_key
from edge_proxy.handlers.plan import Plan
from edge_proxy.store.held_key import HeldKey
from kit import log
from kit.bus.errors import BusError, RefusedError
from kit.ids import new_id

_CLOSED_STALL_S = 10.0

_logger = log.get(__name__)
REFUSALS = Counter(
    "quotagate_refusals_total", "Requests refused before a provider was called.", ["code"]
)


class InferenceEndpoint:
    """The ASGI application of one endpoint."""

    def __init__(self, endpoint: Endpoint, gate: Gate) -> None:
        self._endpoint = endpoint
        self._name = f"POST {endpoint.path}"
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        edge = self._gate.edge
        if edge is None:
            client = Client(scope, receive, send, _CLOSED_STALL_S)
            await self._refuse(client, STARTING)
            return
        client = Client(scope, receive, send, edge.settings.client_stall_s)
        if edge.in_flight.full:
            # Before anything else is done for it: to refuse has to cost less than to serve.
            await self._refuse(client, TOO_BUSY)
            return
        policy = edge.policy_at(self._name)
        takes_x_api_key = self._endpoint.shape.takes_x_api_key
        caller = await authenticate(edge, client, policy, x_api_key=takes_x_api_key)
        # Strangers take no place: they could hold all of them by sending slowly.
        if isinstance(caller, Problem):
            await self._refuse(client, caller)
        else:
            await self._take(edge, client, caller, policy.keys)

    async def _take(self, edge: Edge, client: Client, caller: Caller, policy: Windows) -> None:
        """Take a request in hand; its key may have been looked up for a while."""
        if edge.in_flight.full:
            await self._refuse(client, TOO_BUSY)
        else:
            await edge.in_flight.run(self._serve(edge, client, caller, policy))

    async def _serve(self, edge: Edge, client: Client, caller: Caller, policy: Windows) -> None:
        try:
            asked = await self._read(edge, client)
        except ClientLeftError:
            return
        if isinstance(asked, Problem):
            await self._refuse(client, asked)
            return
        route = route_for(edge.routes, self._endpoint, caller, asked.model)
        if isinstance(route, Problem):
            await self._refuse(client, route)
            return
        held = await hold_key(edge, client, caller, self._endpoint, asked)
        if isinstance(held, Problem):
            await self._refuse(client, held)
            return
        if isinstance(held, Reply):
            await client.answer(held.status, held.headers, held.body)
            return
        inference = self._inference(client, caller, asked, held, policy)
        if client.span is not None:
            client.span.note(about_inference(inference))
        plan = None
        try:
            plan = await self._admit(edge, inference, asked, route)
            if policy.closed and isinstance(plan, Plan) and not plan.windows:
                plan = CHECK_UNAVAILABLE  # admitted by an admission of before there were windows
        finally:
            if held is not None and not isinstance(plan, Plan):
                await held.release()
        if isinstance(plan, Problem):
            await self._refuse(client, plan, inference)
            return
        await Attempts(edge, client, replace(plan, held=held)).run()

    async def _read(self, edge: Edge, client: Client) -> Asked | Problem:
        body = await client.body(edge.settings.max_body_bytes, edge.settings.body_timeout_s)
        asked = body if isinstance(body, Problem) else read(body)
        return asked if isinstance(asked, Problem) else self._endpoint.objection(asked) or asked

    def _inference(
        self,
        client: Client,
        caller: Caller,
        asked: Asked,
        held: HeldKey | None,
        policy: Windows,
    ) -> Inference:
        return Inference(
            inference_id=new_id() if held is None else held.inference_id,
            caller=caller,
            endpoint=self._endpoint,
            model=asked.model,
            streaming=asked.stream,
            trace_id=trace_id(client.header(b"traceparent")),
            input_bytes=len(asked.body),
            windows=policy.windows,
            first_attempt_no=1 if held is None else held.first_attempt_no,
        )

    async def _admit(
        self, edge: Edge, inference: Inference, asked: Asked, route: Route
    ) -> Plan | Problem:
        if not edge.hand_off.accepting:
            return HAND_OFF_UNAVAILABLE
        reply = await _preflight(edge, inference, route)
        if isinstance(reply, Problem):
            return reply
        problem = refusal(reply, inference.model)
        if problem is not None:
            told = self._with_limits(problem, reply, edge.clock.now_us())
            return told.with_headers(window_headers(inference.windows, reply.windows))
        ways = legs(route, reply.prices)
        if reply.policy is None or not ways:
            return CHECK_UNAVAILABLE
        return Plan(
            inference=inference,
            asked=asked,
            policy=reply.policy,
            limits=reply.limits,
            legs=ways,
            retry=route.retry,
            shadowed=reply.shadowed,
            lease=reply.lease,
            windows=window_headers(inference.windows, reply.windows),
        )

    def _with_limits(self, problem: Problem, reply: PreflightReply, now_us: int) -> Problem:
        """Add to a refusal by the limits what only this API's clients know of them."""
        if reply.decision is not Decision.RATE_LIMITED or reply.limits is None:
            return problem
        return problem.with_headers(self._endpoint.shape.limit_headers(reply.limits, now_us))

    async def _refuse(
        self, client: Client, problem: Problem, inference: Inference | None = None
    ) -> None:
        REFUSALS.labels(problem.code).inc()
        headers = {} if inference is None else {"x-inference-id": inference.inference_id}
        await client.refuse(problem, self._endpoint.shape, headers)


async def _preflight(edge: Edge, inference: Inference, route: Route) -> PreflightReply | Problem:
    caller = inference.caller
    try:
        return await edge.admission.preflight(inference, route)
    except RefusedError as error:
        if error.code is ErrorCode.UNKNOWN_TEAM:
            # The key outlived its team in our memory.
            edge.keys.forget(caller.key_id)
            return INVALID_API_KEY
        _logger.warning("preflight refused", code=error.code.value, team_id=caller.team_id)
        return CHECK_UNAVAILABLE
    except BusError as error:
        _logger.warning("preflight failed", error=type(error).__name__, team_id=caller.team_id)
        return CHECK_UNAVAILABLE
