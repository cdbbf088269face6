"""Responses that a provider stores, to be fetched again by the team that got them."""

import hashlib

from contracts.responses import StoredResponse
from edge_proxy.domain.endpoints import RESPONSES
from edge_proxy.domain.inference import Caller
from edge_proxy.domain.problems import Problem, model_not_allowed, unavailable
from edge_proxy.domain.routes import Routes, Target

MEMORY_UNAVAILABLE = unavailable("Stored responses can't be looked up at the moment.")


def entry_key(team_id: str, response_id: str) -> str:
    """Return the key under which a team's response is remembered."""
    return hashlib.sha256(f"{team_id} {response_id}".encode()).hexdigest()


def response_not_found(response_id: str) -> Problem:
    """Return the 404 for a response that isn't stored, or isn't the team's."""
    message = f"There is no response {response_id[:100]!r}."
    return Problem(404, "invalid_request_error", "response_not_found", message, "response_id")


def target_of(
    stored: StoredResponse | None, response_id: str, caller: Caller, routes: Routes
) -> Target | Problem:
    """Return where a response can be fetched, if the caller may have it."""
    if stored is None or stored.team_id != caller.team_id:
        return response_not_found(response_id)
    if not caller.may_use(stored.model):
        return model_not_allowed(stored.model)
    route = routes.models.get(stored.model)
    for target in route.targets if route is not None else ():
        is_its_provider = target.provider.name == stored.provider
        if is_its_provider and RESPONSES.path in target.provider.adapter.apis:
            return target
    return response_not_found(response_id)
