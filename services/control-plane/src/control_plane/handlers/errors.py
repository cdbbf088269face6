"""Errors as HTTP: one shape for all of them, and the one place that knows their statuses."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ConfigDict, Field
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from control_plane.domain.errors import (
    ConflictError,
    ControlPlaneError,
    IdempotencyError,
    InvalidError,
    KeyInUseError,
    KeyReusedError,
    NotFoundError,
    UnavailableError,
)
from control_plane.handlers.fields import Told
from kit import log

INVALID_REQUEST = "invalid_request_error"
SERVER_ERROR = "server_error"

_logger = log.get(__name__)
_STATUSES: dict[type[ControlPlaneError], HTTPStatus] = {
    NotFoundError: HTTPStatus.NOT_FOUND,
    ConflictError: HTTPStatus.CONFLICT,
    InvalidError: HTTPStatus.UNPROCESSABLE_ENTITY,
    KeyReusedError: HTTPStatus.UNPROCESSABLE_ENTITY,
    KeyInUseError: HTTPStatus.CONFLICT,
    UnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
}
# SQLSTATE classes of a server that can't do it now: connections, conflicts between transactions,
# resources, an operator's intervention; and a lock that wasn't given in time.
_PASSING_SQLSTATES = ("08", "40", "53", "57", "55P03")
_MOST_PROBLEMS = 5
_CODES = {"extra_forbidden": "unknown_field", "missing": "missing_field"}


class ErrorDetail(Told):
    """What went wrong."""

    type: str = Field(description="The kind of error: who has to do something about it.")
    code: str = Field(description="The error, for programs.")
    message: str = Field(description="The error, for people.")
    field: str | None = Field(
        default=None, description="The path of the field that is wrong; absent where none is."
    )


class ErrorAnswer(Told):
    """The body of every answer that isn't a success."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "error": {
                        "type": INVALID_REQUEST,
                        "code": "invalid_value",
                        "message": "rpm: Input should be greater than or equal to 1",
                        "field": "rpm",
                    }
                }
            ]
        },
    )

    error: ErrorDetail


def respond(status: int, detail: ErrorDetail, headers: dict[str, str] | None = None) -> Response:
    """Return an error as a response."""
    body = ErrorAnswer(error=detail).model_dump(exclude_none=True)
    return JSONResponse(body, status, headers)


def install(api: FastAPI) -> None:
    """Let every error of the application have our shape."""
    api.add_exception_handler(ControlPlaneError, _refused)
    api.add_exception_handler(RequestValidationError, _invalid)
    api.add_exception_handler(HTTPException, _by_status)
    for unavailable in (OSError, TimeoutError, PoolTimeoutError, DBAPIError):
        api.add_exception_handler(unavailable, _database)
    api.add_exception_handler(Exception, _unexpected)


async def _refused(_request: Request, error: Exception) -> Response:
    if not isinstance(error, ControlPlaneError):
        raise error
    status = _STATUSES[type(error)]
    kind = INVALID_REQUEST
    if isinstance(error, IdempotencyError):
        kind = "idempotency_error"
    elif status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        kind = SERVER_ERROR
    detail = ErrorDetail(type=kind, code=error.code, message=error.message, field=error.field)
    passing = isinstance(error, KeyInUseError | UnavailableError)
    return respond(status, detail, {"Retry-After": "1"} if passing else None)


async def _invalid(_request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    problems = error.errors()
    if problems[0]["type"] == "json_invalid":
        detail = ErrorDetail(
            type=INVALID_REQUEST, code="invalid_json", message="The body is not valid JSON."
        )
        return respond(HTTPStatus.BAD_REQUEST, detail)
    field = _path(problems[0]["loc"])
    detail = ErrorDetail(
        type=INVALID_REQUEST,
        code=_CODES.get(problems[0]["type"], "invalid_value"),
        message="; ".join(_sentence(problem) for problem in problems[:_MOST_PROBLEMS]),
        field=field or None,
    )
    return respond(HTTPStatus.UNPROCESSABLE_ENTITY, detail)


def _path(location: Sequence[int | str]) -> str:
    """Return where a problem is: the first part only says body, path, query or header."""
    return ".".join(str(part) for part in location[1:])


def _sentence(problem: Mapping[str, Any]) -> str:
    path = _path(problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"{path}: There is no such field"
    return f"{path}: {problem['msg']}" if path else str(problem["msg"])


async def _by_status(_request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    codes = {
        HTTPStatus.BAD_REQUEST: ("invalid_json", "The body is not valid JSON."),
        HTTPStatus.NOT_FOUND: ("route_not_found", "There is no such address."),
        HTTPStatus.METHOD_NOT_ALLOWED: ("method_not_allowed", "The address has no such method."),
    }
    status = HTTPStatus(error.status_code)
    code, message = codes.get(status, (status.phrase.lower().replace(" ", "_"), status.phrase))
    detail = ErrorDetail(type=INVALID_REQUEST, code=code, message=message)
    return respond(status, detail, dict(error.headers) if error.headers else None)


async def _database(request: Request, error: Exception) -> Response:
    if isinstance(error, DBAPIError) and not _passes(error):
        raise error
    _logger.warning("database unavailable", error=type(error).__name__)
    return await _refused(request, UnavailableError())


def _passes(error: DBAPIError) -> bool:
    sqlstate = getattr(error.orig, "sqlstate", None) or ""
    return (
        error.connection_invalidated
        or isinstance(error, InterfaceError | OperationalError)
        or sqlstate.startswith(_PASSING_SQLSTATES)
    )


async def _unexpected(_request: Request, _error: Exception) -> Response:
    # Its text is logged by observation.py and told to nobody.
    detail = ErrorDetail(
        type=SERVER_ERROR, code="internal_error", message="Something unexpected went wrong."
    )
    return respond(HTTPStatus.INTERNAL_SERVER_ERROR, detail)
