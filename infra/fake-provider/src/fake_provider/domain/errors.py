"""Errors as the real providers word them."""

import msgspec

_OPENAI_DEFAULTS: dict[int, tuple[str, str | None]] = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    402: ("insufficient_quota", "insufficient_quota"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
    503: ("server_error", "overloaded"),
}
_ANTHROPIC_DEFAULTS: dict[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class ApiError(msgspec.Struct, frozen=True, kw_only=True):
    """One refusal. An empty type or code means the provider's usual one for the status."""

    status: int
    message: str = "The fake provider was told to fail."
    type: str = ""
    code: str = ""
    param: str | None = None


def openai_error(error: ApiError, _request_id: str) -> bytes:
    """Return the body of an OpenAI error."""
    usual_type, usual_code = _OPENAI_DEFAULTS.get(error.status, ("server_error", None))
    return msgspec.json.encode(
        {
            "error": {
                "message": error.message,
                "type": error.type or usual_type,
                "param": error.param,
                "code": error.code or usual_code,
            }
        }
    )


def anthropic_error(error: ApiError, request_id: str) -> bytes:
    """Return the body of an Anthropic error."""
    kind = error.type or _ANTHROPIC_DEFAULTS.get(error.status, "api_error")
    return msgspec.json.encode(
        {
            "type": "error",
            "error": {"type": kind, "message": error.message},
            "request_id": request_id,
        }
    )
