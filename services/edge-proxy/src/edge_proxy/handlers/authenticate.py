"""Who calls? Everything that is wrong with a key is the same 401.

An address whose calls failed too often is refused before anything is looked up. Only failures
count, and a key that was found good before goes on: others may share the address, as behind a NAT.
"""

from contracts.cache import KeyFacts
from edge_proxy.domain.headers import presented_keys
from edge_proxy.domain.inference import Caller
from edge_proxy.domain.layers import too_many_connections, too_many_failures
from edge_proxy.domain.policies import EndpointPolicy
from edge_proxy.domain.problems import INVALID_API_KEY, KEYS_UNAVAILABLE, Problem
from edge_proxy.errors import KeyLookupError
from edge_proxy.handlers.client import Client
from edge_proxy.handlers.edge import Edge
from edge_proxy.handlers.endpoint_policies import judge_address
from kit import keys


async def authenticate(
    edge: Edge, client: Client, policy: EndpointPolicy, *, x_api_key: bool
) -> Caller | Problem:
    """Return who holds the key of a request, or why it isn't accepted.

    A client may send a provider's key beside ours, out of its environment; two of ours it may not.
    Callers without a valid key meet the endpoint's windows of addresses.
    """
    if client.excess is not None:
        return too_many_connections(client.excess)
    presented = {
        keys.parse(text) for text in presented_keys(client.headers, x_api_key=x_api_key)
    } - {None}
    parsed = presented.pop() if len(presented) == 1 else None
    pepper = edge.settings.key_pepper.get_secret_value()
    if edge.failures:
        blocked = _blocked(edge, client)
        if blocked is not None:
            return _remembered(edge, parsed, pepper) or blocked
    if parsed is None:
        return await _stranger(edge, client, policy)
    try:
        facts = await edge.keys.find(parsed.key_id)
    except KeyLookupError:
        return KEYS_UNAVAILABLE
    if facts is None or not edge.keys.accepts(facts, parsed, pepper):
        return await _stranger(edge, client, policy)
    return _caller(facts)


def _remembered(edge: Edge, parsed: keys.ParsedKey | None, pepper: str) -> Caller | None:
    facts = None if parsed is None else edge.keys.remembered(parsed.key_id)
    if parsed is None or facts is None or not edge.keys.accepts(facts, parsed, pepper):
        return None
    return _caller(facts)


def _caller(facts: KeyFacts) -> Caller:
    return Caller(
        team_id=facts.team_id,
        key_id=facts.key_id,
        allowed_models=facts.allowed_models,
        limits=facts.limits,
    )


def _blocked(edge: Edge, client: Client) -> Problem | None:
    """Return what an address is told that has failed too often; None: it may try."""
    failures = edge.failures
    if failures is None:
        return None
    address = edge.proxies.client_of(client.peer, client.headers)
    debt_us = failures.debt_us(address, edge.clock.monotonic_us())
    if not failures.wait_us(debt_us):
        return None
    return too_many_failures(failures, debt_us, edge.clock.now_us())


async def _stranger(edge: Edge, client: Client, policy: EndpointPolicy) -> Problem:
    """Return what a caller without a valid key is told, and count it."""
    if edge.failures is None and not policy.addresses:
        return INVALID_API_KEY
    address = edge.proxies.client_of(client.peer, client.headers)
    if edge.failures is not None:
        edge.failures.count(address, edge.clock.monotonic_us())
    judged = await judge_address(edge, policy, address)
    return judged if isinstance(judged, Problem) else INVALID_API_KEY.with_headers(judged)
