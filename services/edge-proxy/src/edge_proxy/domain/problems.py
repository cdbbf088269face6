"""Every way to say no: a status, a type, a code and a sentence. Values, not exceptions."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from contracts.limits import LimitScope
from contracts.spend import SpendPeriod, SpendScope
from edge_proxy.domain.reasons import HEADER as REASON_HEADER
from edge_proxy.domain.reasons import EdgeReason

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_RETRY_SOON = MappingProxyType({"retry-after": "1"})
_DONT_RETRY = MappingProxyType({"x-should-retry": "false"})


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a client doesn't get what it asked for, whatever API it speaks."""

    status: int
    type: str
    code: str
    message: str
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_HEADERS)
    details: Mapping[str, str | int | None] | None = None
    """What programs may want to know beyond the code; part of the body where it is given."""

    def with_headers(self, headers: Mapping[str, str]) -> "Problem":
        """Return the problem with further headers."""
        return replace(self, headers={**self.headers, **headers})

    def with_details(self, details: Mapping[str, str | int | None]) -> "Problem":
        """Return the problem with details."""
        return replace(self, details=details)


def invalid_request(code: str, message: str, param: str | None = None) -> Problem:
    """Return a 400 for a request that can't be understood."""
    return Problem(400, "invalid_request_error", code, message, param)


INVALID_JSON = invalid_request("invalid_json", "The body is not a JSON object.")

# Never says which of unknown, expired, revoked or wrong it was.
INVALID_API_KEY = Problem(
    401,
    "authentication_error",
    "invalid_api_key",
    "The API key is missing or not valid.",
    headers=MappingProxyType({"www-authenticate": "Bearer"}),
)
BALANCE_NEGATIVE = Problem(
    402,
    "insufficient_quota",
    "credit_balance_exhausted",
    "Team balance is negative. Retry after the balance is refreshed.",
    headers=MappingProxyType({**_DONT_RETRY, REASON_HEADER: EdgeReason.BALANCE.value}),
    details=MappingProxyType(
        {
            "reason": EdgeReason.BALANCE.value,
            "scope": LimitScope.TEAM.value,
            "limit": None,
            "used": None,
            "resets_at": None,
        }
    ),
)


def spend_limit_reached(scope: SpendScope, period: SpendPeriod, resets_at: str) -> Problem:
    """Return the 402 for money that may not be spent before `resets_at`, a time in words."""
    whose = "The team's" if scope is SpendScope.TEAM else "This API key's"
    message = f"{whose} spend limit of this {period} is reached; it resets at {resets_at}."
    return Problem(402, "insufficient_quota", "spend_limit_reached", message, headers=_DONT_RETRY)


URL_NOT_FOUND = Problem(404, "invalid_request_error", "unknown_url", "There is no such endpoint.")

METHOD_NOT_ALLOWED = Problem(
    405, "invalid_request_error", "method_not_allowed", "This endpoint doesn't take this method."
)

BODY_TOO_SLOW = Problem(
    408, "invalid_request_error", "request_timeout", "The body didn't arrive in time."
)

RATE_LIMITED = Problem(429, "rate_limit_error", "rate_limit_exceeded", "Team rate limit exceeded.")
KEY_RATE_LIMITED = replace(RATE_LIMITED, message="API key rate limit exceeded.")
MODEL_RATE_LIMITED = replace(RATE_LIMITED, message="Team rate limit of this model exceeded.")
ENDPOINT_LIMITED = Problem(
    429, "rate_limit_error", "endpoint_limit", "Too many requests to this endpoint."
)
CONCURRENCY_LIMITED = Problem(
    429,
    "rate_limit_error",
    "concurrent_limit",
    "As many requests of this team are in flight as may be.",
)
DAY_REQUESTS_LIMITED = Problem(
    429,
    "rate_limit_error",
    "daily_request_limit",
    "The team's requests of this day are used up.",
    headers=_DONT_RETRY,
)
DAY_TOKENS_LIMITED = Problem(
    429,
    "rate_limit_error",
    "daily_token_limit",
    "The team's tokens of this day are used up, or the input would use more than is left.",
    headers=_DONT_RETRY,
)
NEVER_ADMISSIBLE = invalid_request(
    "request_exceeds_limit", "The input alone is more than the team's tokens of a day."
)

UNEXPECTED = Problem(500, "server_error", "internal_error", "The gateway failed.")


def unavailable(message: str) -> Problem:
    """Return a 503 for what the gateway itself can't do at the moment."""
    return Problem(503, "server_error", "service_unavailable", message, headers=_RETRY_SOON)


CHECK_UNAVAILABLE = unavailable("Rate limit check is temporarily unavailable.")
KEYS_UNAVAILABLE = unavailable("API key check is temporarily unavailable.")
HAND_OFF_UNAVAILABLE = unavailable("Usage can't be recorded at the moment; nothing was sent.")
NOT_RECORDED = unavailable("The provider answered, but its usage couldn't be recorded yet.")
TOO_BUSY = replace(
    unavailable("Too many requests are in flight."),
    headers=MappingProxyType({**_RETRY_SOON, REASON_HEADER: EdgeReason.IN_FLIGHT.value}),
    details=MappingProxyType({"reason": EdgeReason.IN_FLIGHT.value, "scope": "edge"}),
)
STARTING = unavailable("The gateway is starting or stopping.")


def model_not_found(model: str) -> Problem:
    """Return the 404 for a model without a route."""
    message = f"There is no model {model[:100]!r}."
    return Problem(404, "invalid_request_error", "model_not_found", message, "model")


def unsupported_endpoint(model: str, path: str) -> Problem:
    """Return the 404 for a model none of whose providers has anything like this endpoint."""
    message = f"The model {model!r} is not served at {path}."
    return Problem(404, "invalid_request_error", "unsupported_endpoint", message, "model")


def model_not_allowed(model: str) -> Problem:
    """Return the 403 for a model that the key may not use."""
    message = f"This API key may not use the model {model!r}."
    return Problem(403, "permission_error", "model_not_allowed", message, "model")


def model_not_priced(model: str) -> Problem:
    """Return the 400 for a model none of whose deployments has a price."""
    message = f"The model {model!r} has no price yet."
    return invalid_request("model_not_priced", message, "model")


def body_too_large(max_body_bytes: int) -> Problem:
    """Return the 413 for a body beyond the bound."""
    message = f"The body is larger than {max_body_bytes} bytes."
    return Problem(413, "invalid_request_error", "request_too_large", message)
