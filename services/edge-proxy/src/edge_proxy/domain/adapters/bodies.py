"""The smallest changes to a request's body."""

import msgspec

from edge_proxy.domain.adapters.answer import Outgoing
from edge_proxy.domain.asked import Asked, Members


def untouched(asked: Asked, model: str) -> Outgoing:
    """Return the client's own body, for APIs from which nothing has to be asked."""
    return Outgoing(named(asked, model))


def named(asked: Asked, model: str) -> bytes:
    """Return the body with the deployment's name of the model: the same bytes where it is equal."""
    if model == asked.model:
        return asked.as_sent()
    return asked.with_members(renamed(asked, model))


def renamed(asked: Asked, model: str) -> Members:
    """Return the top level with the deployment's name of the model."""
    if model == asked.model:
        return asked.members
    return {**asked.members, "model": msgspec.Raw(msgspec.json.encode(model))}
