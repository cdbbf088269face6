"""Who calls? Everything that is wrong with a key is the same 401."""

from edge_proxy.clients.keys import KeyDirectory
from edge_proxy.domain.headers import RawHeaders, bearer_token
from edge_proxy.domain.inference import Caller
from edge_proxy.domain.problems import INVALID_API_KEY, KEYS_UNAVAILABLE, Problem
from edge_proxy.errors import KeyLookupError
from kit import keys


async def authenticate(
    headers: RawHeaders, directory: KeyDirectory, pepper: str
) -> Caller | Problem:
    """Return who holds the key of a request, or why it isn't accepted."""
    token = bearer_token(headers)
    parsed = None if token is None else keys.parse(token)
    if parsed is None:
        return INVALID_API_KEY
    try:
        facts = await directory.find(parsed.key_id)
    except KeyLookupError:
        return KEYS_UNAVAILABLE
    if facts is None or not keys.matches(parsed, facts.secret_hash, pepper):
        return INVALID_API_KEY
    return Caller(team_id=facts.team_id, key_id=facts.key_id, allowed_models=facts.allowed_models)
