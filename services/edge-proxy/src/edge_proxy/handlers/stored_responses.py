"""`GET /v1/responses/{id}`: a stored response, fetched again. Free for its team: no record."""

from prometheus_client import Counter
from starlette.types import Receive, Scope, Send

from edge_proxy.clients.provider import Exchange
from edge_proxy.domain import headers, upstream
from edge_proxy.domain.adapters.openai_responses import is_id
from edge_proxy.domain.endpoints import RESPONSES
from edge_proxy.domain.inference import Caller
from edge_proxy.domain.problems import STARTING, TOO_BUSY, Problem
from edge_proxy.domain.routes import Target
from edge_proxy.domain.stored_responses import (
    MEMORY_UNAVAILABLE,
    response_not_found,
    target_of,
)
from edge_proxy.domain.upstream import Reply
from edge_proxy.errors import EdgeError
from edge_proxy.handlers.authenticate import authenticate
from edge_proxy.handlers.client import Client
from edge_proxy.handlers.dispatch import problem_of
from edge_proxy.handlers.edge import Edge, Gate
from edge_proxy.handlers.endpoint_policies import judge_caller
from kit.bus.errors import BusError

PATH = "/v1/responses/{response_id}"
ENDPOINT = f"GET {PATH}"

_STALL_S = 10.0
_SHAPE = RESPONSES.shape

_FETCHES = Counter(
    "quotagate_stored_responses_fetched_total", "Fetches of stored responses.", ["outcome"]
)


class StoredResponse:
    """The ASGI application of the address."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        edge = self._gate.edge
        if edge is None:
            await Client(scope, receive, send, _STALL_S).refuse(STARTING, _SHAPE, {})
            return
        client = Client(scope, receive, send, edge.settings.client_stall_s)
        caller = await authenticate(edge, client, edge.policy_at(ENDPOINT), x_api_key=False)
        if isinstance(caller, Problem):
            await client.refuse(caller, _SHAPE, {})
        elif edge.in_flight.full:
            await client.refuse(TOO_BUSY, _SHAPE, {})
        else:
            response_id = scope["path_params"]["response_id"]
            await edge.in_flight.run(_serve(edge, client, caller, response_id))


async def _serve(edge: Edge, client: Client, caller: Caller, response_id: str) -> None:
    limits = await judge_caller(edge, edge.policy_at(ENDPOINT), caller)
    if isinstance(limits, Problem):
        _FETCHES.labels("refused").inc()
        await client.refuse(limits, _SHAPE, {})
        return
    target = await _find(edge, caller, response_id)
    if isinstance(target, Problem):
        _FETCHES.labels("refused").inc()
        await client.refuse(target, _SHAPE, limits)
        return
    reply = await _fetch(edge, client, target, response_id)
    _FETCHES.labels("answered" if upstream.is_success(reply.status) else "failed").inc()
    await client.answer(reply.status, {**reply.headers, **limits}, reply.body)


async def _find(edge: Edge, caller: Caller, response_id: str) -> Target | Problem:
    if not is_id(response_id):
        return response_not_found(response_id)
    try:
        stored = await edge.stored_responses.find(caller.team_id, response_id)
    except BusError:
        return MEMORY_UNAVAILABLE
    return target_of(stored, response_id, caller, edge.routes)


async def _fetch(edge: Edge, client: Client, target: Target, response_id: str) -> Reply:
    path = f"{target.provider.adapter.apis[RESPONSES.path].path}/{response_id}"
    exchange = edge.providers.exchange(
        target, path, headers.to_provider(client.headers), b"", method="GET"
    )
    edge.in_flight.waits(exchange)
    try:
        await exchange.open()
        body = await exchange.whole(edge.settings.max_answer_bytes)
    except EdgeError as error:
        return upstream.reply_of(problem_of(error), _SHAPE)
    finally:
        edge.in_flight.waited(exchange)
        await exchange.close()
    return _reply(exchange, body)


def _reply(exchange: Exchange, body: bytes) -> Reply:
    if upstream.is_success(exchange.status):
        return Reply(exchange.status, headers.to_client(exchange.headers.items()), body)
    problem = upstream.shown_instead(exchange.status, _SHAPE.error_code(body))
    if problem is None and not _SHAPE.is_error(body):
        problem = upstream.unreadable_refusal(exchange.status)
    if problem is not None:
        return upstream.reply_of(problem, _SHAPE)
    passed = headers.to_client(exchange.headers.items(), error=True)
    return Reply(exchange.status, {**passed, **upstream.FROM_UPSTREAM}, body)
