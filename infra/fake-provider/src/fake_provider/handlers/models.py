"""What is asked without an inference: the list of models, and stored answers."""

import secrets

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from fake_provider.domain.api import ANTHROPIC, OPENAI, Dialect
from fake_provider.domain.errors import ApiError
from fake_provider.handlers.inference import Provider

_CREATED_S = 1_715_367_049
_CREATED = "2024-05-10T18:50:49Z"


def lookup_routes(provider: Provider, models: tuple[str, ...]) -> list[BaseRoute]:
    """Return `GET /v1/models`, `/v1/models/{model}` and `/v1/responses/{id}`."""

    async def list_models(request: Request) -> Response:
        dialect, refusal = _judge(request, provider)
        return refusal or _json(_list(models, dialect))

    async def get_model(request: Request) -> Response:
        dialect, refusal = _judge(request, provider)
        if refusal:
            return refusal
        model = request.path_params["model"]
        if model not in models:
            return _error(dialect, ApiError(status=404, message=f"Model {model} not found."))
        return _json(_model(model, dialect))

    async def get_response(request: Request) -> Response:
        _, refusal = _judge(request, provider)
        if refusal:
            return refusal
        body = provider.stored.get(request.path_params["response_id"])
        if body is None:
            return _error(OPENAI, ApiError(status=404, message="Response not found."))
        return Response(body, media_type="application/json")

    return [
        Route("/v1/models", list_models),
        Route("/v1/models/{model:path}", get_model),
        Route("/v1/responses/{response_id}", get_response),
    ]


def _judge(request: Request, provider: Provider) -> tuple[Dialect, Response | None]:
    """Return whose API was called, and the refusal if the key isn't one of ours."""
    dialect = ANTHROPIC if "anthropic-version" in request.headers else OPENAI
    refused = dialect.refusal(dict(request.headers.raw), provider.api_keys)
    return dialect, None if refused is None else _error(dialect, refused)


def _error(dialect: Dialect, error: ApiError) -> Response:
    body = dialect.error(error, f"req_{secrets.token_hex(8)}")
    return Response(body, error.status, media_type="application/json")


def _json(content: object) -> Response:
    return Response(msgspec.json.encode(content), media_type="application/json")


def _list(models: tuple[str, ...], dialect: Dialect) -> dict[str, object]:
    data = [_model(model, dialect) for model in models]
    if dialect is OPENAI:
        return {"object": "list", "data": data}
    return {"data": data, "has_more": False, "first_id": models[0], "last_id": models[-1]}


def _model(model: str, dialect: Dialect) -> dict[str, object]:
    if dialect is OPENAI:
        return {"id": model, "object": "model", "created": _CREATED_S, "owned_by": "fake-provider"}
    return {
        "type": "model",
        "id": model,
        "display_name": model,
        "created_at": _CREATED,
        "lifecycle": "active",
    }
