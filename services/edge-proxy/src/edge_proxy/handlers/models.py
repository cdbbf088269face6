"""`GET /v1/models`: what the key may use. Free: nobody's limits move."""

import msgspec
from starlette.types import Receive, Scope, Send

from edge_proxy.domain.problems import STARTING, Problem
from edge_proxy.domain.shapes import OPENAI_SHAPE
from edge_proxy.handlers.authenticate import authenticate
from edge_proxy.handlers.client import Client
from edge_proxy.handlers.edge import Edge, Gate

PATH = "/v1/models"

_STALL_S = 10.0
_JSON = {"content-type": "application/json"}


class Models:
    """The ASGI application of the list."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        client = Client(scope, receive, send, _STALL_S)
        body = await self._list(client)
        if isinstance(body, Problem):
            await client.refuse(body, OPENAI_SHAPE, {})
        else:
            await client.answer(200, _JSON, body)

    async def _list(self, client: Client) -> bytes | Problem:
        edge = self._gate.edge
        if edge is None:
            return STARTING
        pepper = edge.settings.key_pepper.get_secret_value()
        caller = await authenticate(client.headers, edge.keys, pepper)
        if isinstance(caller, Problem):
            return caller
        return _encode(edge, [name for name in edge.routes.models if caller.may_use(name)])


def _encode(edge: Edge, models: list[str]) -> bytes:
    # When a model was made, the gateway doesn't know; clients expect a number.
    rows = [
        {
            "id": model,
            "object": "model",
            "created": 0,
            "owned_by": edge.routes.models[model].targets[0].provider.name,
        }
        for model in models
    ]
    return msgspec.json.encode({"object": "list", "data": rows})
