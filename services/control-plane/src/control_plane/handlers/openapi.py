"""What OpenAPI says beyond the handlers' own types: the token, and the errors of each route."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import Field

from control_plane.handlers.errors import ErrorAnswer

Responses = dict[int | str, dict[str, Any]]

_SECURITY_SCHEME = "AdminToken"
EVENT_ID: Any = Field(
    description="The change event: ask `/admin/v1/events/{event_id}` whether it was published."
    " Null: nothing changed, so there is none.",
)


def _error(description: str) -> dict[str, Any]:
    return {"model": ErrorAnswer, "description": description}


EVERYWHERE: Responses = {
    401: _error("The admin token is missing or wrong."),
    422: _error("A field is unknown, missing or impossible; the message names it."),
    500: _error("Something unexpected went wrong."),
    503: _error("The database, or what it needs, doesn't answer. Try again."),
}
WITH_BODY: Responses = {
    400: _error("The body is not valid JSON."),
    408: _error("The body took too long to arrive."),
    413: _error("The body is too large."),
    415: _error("The body is not declared as JSON."),
}


REVOKED: Responses = {409: _error("The key is revoked.")}


def not_found(what: str) -> Responses:
    """Return the response of a route whose path names something."""
    return {404: _error(f"There is no such {what}.")}


def conflict(what: str) -> Responses:
    """Return the response of a route that creates something."""
    return {
        409: _error(
            f"There is such a {what} already, or the first request with this idempotency key is"
            " still running."
        )
    }


def describe(api: FastAPI) -> dict[str, Any]:
    """Return the application's OpenAPI document, in which every operation needs the token."""
    document = get_openapi(
        title="Quotagate control plane",
        version="1",
        summary="Teams, keys, tiers, accounts, prices, and what was recorded and charged.",
        description=(
            "Amounts are USD as decimal strings, in both directions. Instants are RFC 3339 with"
            " an offset. Unknown fields are refused. Lists are paged by `cursor`. A create with an"
            " `Idempotency-Key` is carried out once."
        ),
        routes=api.routes,
    )
    document["components"]["securitySchemes"] = {
        _SECURITY_SCHEME: {
            "type": "http",
            "scheme": "bearer",
            "description": "The value of QUOTAGATE_ADMIN_TOKEN.",
        }
    }
    document["security"] = [{_SECURITY_SCHEME: []}]
    for operations in document["paths"].values():
        for operation in operations.values():
            if "requestBody" not in operation:
                for status in WITH_BODY:
                    operation["responses"].pop(str(status), None)
    return document
