"""Who calls? Everything that is wrong with a key is the same 401."""

from edge_proxy.clients.keys import KeyDirectory
from edge_proxy.domain.headers import RawHeaders, presented_keys
from edge_proxy.domain.inference import Caller
from edge_proxy.domain.problems import INVALID_API_KEY, KEYS_UNAVAILABLE, Problem
from edge_proxy.errors import KeyLookupError
from kit import keys


async def authenticate(
    headers: RawHeaders, directory: KeyDirectory, pepper: str, *, x_api_key: bool
) -> Caller | Problem:
    """Return who holds the key of a request, or why it isn't accepted.

    A client may send a provider's key beside ours, out of its environment; two of ours it may not.
    """
    presented = {keys.parse(text) for text in presented_keys(headers, x_api_key=x_api_key)} - {None}
    parsed = presented.pop() if len(presented) == 1 else None
    if parsed is None:
        return INVALID_API_KEY
    try:
        facts = await directory.find(parsed.key_id)
    except KeyLookupError:
        return KEYS_UNAVAILABLE
    if facts is None or not directory.accepts(facts, parsed, pepper):
        return INVALID_API_KEY
    return Caller(
        team_id=facts.team_id,
        key_id=facts.key_id,
        allowed_models=facts.allowed_models,
        limits=facts.limits,
    )
