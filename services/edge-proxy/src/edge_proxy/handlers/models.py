"""`GET /v1/models`: what the key may use, in the shape of whoever asks. Free: no limits move."""

from collections.abc import Mapping, Sequence

import msgspec
from starlette.types import Receive, Scope, Send

from edge_proxy.domain.problems import STARTING, Problem, model_not_found
from edge_proxy.domain.routes import Route
from edge_proxy.domain.shapes import ANTHROPIC_SHAPE, OPENAI_SHAPE
from edge_proxy.handlers.authenticate import authenticate
from edge_proxy.handlers.client import Client
from edge_proxy.handlers.edge import Gate

PATH = "/v1/models"
ONE_PATH = "/v1/models/{model:path}"

_STALL_S = 10.0
_JSON = {"content-type": "application/json"}

_Json = Mapping[str, object]


class Models:
    """The ASGI application of the list and of one entry."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        client = Client(scope, receive, send, _STALL_S)
        # This API's clients always send it, and there is no other sign of them in a GET.
        is_anthropic = client.header(b"anthropic-version") is not None
        found = await self._find(
            client, scope["path_params"].get("model"), is_anthropic=is_anthropic
        )
        if isinstance(found, Problem):
            await client.refuse(found, ANTHROPIC_SHAPE if is_anthropic else OPENAI_SHAPE, {})
        else:
            await client.answer(200, _JSON, msgspec.json.encode(found))

    async def _find(
        self, client: Client, model: str | None, *, is_anthropic: bool
    ) -> _Json | Problem:
        edge = self._gate.edge
        if edge is None:
            return STARTING
        pepper = edge.settings.key_pepper.get_secret_value()
        caller = await authenticate(client.headers, edge.keys, pepper, x_api_key=is_anthropic)
        if isinstance(caller, Problem):
            return caller
        usable = {name: route for name, route in edge.routes.models.items() if caller.may_use(name)}
        if model is None:
            rows = [_row(route, is_anthropic=is_anthropic) for route in usable.values()]
            return _page(rows) if is_anthropic else {"object": "list", "data": rows}
        # Whether there is a model that this key may not use, is none of its business.
        return (
            _row(usable[model], is_anthropic=is_anthropic)
            if model in usable
            else model_not_found(model)
        )


def _row(route: Route, *, is_anthropic: bool) -> _Json:
    # When a model was made, the gateway doesn't know; clients expect a time.
    if is_anthropic:
        return {
            "type": "model",
            "id": route.model,
            "display_name": route.model,
            "created_at": "1970-01-01T00:00:00Z",
        }
    return {
        "id": route.model,
        "object": "model",
        "created": 0,
        "owned_by": route.targets[0].provider.name,
    }


def _page(rows: Sequence[_Json]) -> _Json:
    """Return everything as the only page."""
    ends = {"first_id": rows[0]["id"], "last_id": rows[-1]["id"]} if rows else {}
    return {"data": rows, "has_more": False, "first_id": None, "last_id": None, **ends}
