"""`GET /v1/models`: what the key may use, in the shape of whoever asks. Free for its team."""

from collections.abc import Mapping, Sequence

import msgspec
from starlette.types import Receive, Scope, Send

from edge_proxy.domain.problems import STARTING, Problem, model_not_found
from edge_proxy.domain.routes import Route
from edge_proxy.domain.shapes import ANTHROPIC_SHAPE, OPENAI_SHAPE
from edge_proxy.handlers.authenticate import authenticate
from edge_proxy.handlers.client import Client
from edge_proxy.handlers.edge import Gate
from edge_proxy.handlers.endpoint_policies import judge_caller

PATH = "/v1/models"
ONE_PATH = "/v1/models/{model:path}"
ENDPOINT = "GET /v1/models"
ONE_ENDPOINT = "GET /v1/models/{model}"

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
        model = scope["path_params"].get("model")
        found, limits = await self._find(client, model, is_anthropic=is_anthropic)
        if isinstance(found, Problem):
            await client.refuse(found, ANTHROPIC_SHAPE if is_anthropic else OPENAI_SHAPE, limits)
        else:
            await client.answer(200, {**_JSON, **limits}, msgspec.json.encode(found))

    async def _find(
        self, client: Client, model: str | None, *, is_anthropic: bool
    ) -> tuple[_Json | Problem, Mapping[str, str]]:
        """Return the answer's body, and the headers of the endpoint's windows."""
        edge = self._gate.edge
        if edge is None:
            return STARTING, {}
        policy = edge.policy_at(ENDPOINT if model is None else ONE_ENDPOINT)
        caller = await authenticate(edge, client, policy, x_api_key=is_anthropic)
        if isinstance(caller, Problem):
            return caller, {}
        limits = await judge_caller(edge, policy, caller)
        if isinstance(limits, Problem):
            return limits, {}
        routes = edge.routes.models.items()
        usable = {name: route for name, route in routes if caller.may_use(name)}
        return _body(usable, model, is_anthropic=is_anthropic), limits


def _body(usable: Mapping[str, Route], model: str | None, *, is_anthropic: bool) -> _Json | Problem:
    if model is None:
        rows = [_row(route, is_anthropic=is_anthropic) for route in usable.values()]
        return _page(rows) if is_anthropic else {"object": "list", "data": rows}
    # Whether there is a model that this key may not use, is none of its business.
    if model not in usable:
        return model_not_found(model)
    return _row(usable[model], is_anthropic=is_anthropic)


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
