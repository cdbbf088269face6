"""Requests with an `Idempotency-Key`: one inference for all that carry the same key and body."""

from edge_proxy.domain.asked import Asked
from edge_proxy.domain.endpoints import Endpoint
from edge_proxy.domain.idempotency import REPLAY_HEADER, Replay, idempotency_key, request_hash
from edge_proxy.domain.inference import Caller
from edge_proxy.domain.problems import NOT_RECORDED, Problem
from edge_proxy.domain.upstream import Reply
from edge_proxy.handlers.client import Client
from edge_proxy.handlers.edge import Edge
from edge_proxy.store.held_key import HeldKey


async def hold_key(
    edge: Edge, client: Client, caller: Caller, endpoint: Endpoint, asked: Asked
) -> HeldKey | Reply | Problem | None:
    """Return the request's key, held for it; None: it has none; a reply: what it got before."""
    key = idempotency_key(client.headers)
    if key is None or isinstance(key, Problem):
        return key
    found = await edge.idempotency.claim(caller.team_id, key, request_hash(endpoint, asked.body))
    if not isinstance(found, Replay):
        return found
    if found.unrecorded is not None:
        # Nobody hears of a success that isn't durable, at a second asking neither.
        if not await edge.hand_off.deliver(found.unrecorded):
            return NOT_RECORDED
        await edge.idempotency.recorded(caller.team_id, key)
    answer = found.answer
    return Reply(answer.status, {**answer.headers, **REPLAY_HEADER}, answer.body)
