"""The closed set of error codes that cross the bus.

A reply carries one in the header `Nats-Service-Error-Code`, and a fixed sentence in
`Nats-Service-Error`; never the text of an internal exception.
"""

from enum import StrEnum


class ErrorCode(StrEnum):
    """Why a request was not answered. Each says whether anything may have moved."""

    INVALID_MESSAGE = "invalid_message"
    """The request could not be read. Nothing moved."""
    DEADLINE_EXCEEDED = "deadline_exceeded"
    """The caller's deadline had passed before the work began. Nothing moved."""
    OVERLOADED = "overloaded"
    """Too much work is waiting. Nothing moved."""
    UNKNOWN_TEAM = "unknown_team"
    """The database has no such team, account or tier. Nothing moved."""
    IMPOSSIBLE_LIMITS = "impossible_limits"
    """What is stored of the team's tier, or of the key, can't be its limits. Nothing moved."""
    NOT_READY = "not_ready"
    """The service hasn't loaded what it needs. Nothing moved."""
    STORE_UNAVAILABLE = "store_unavailable"
    """Redis or Postgres failed or was too slow. The outcome may be unknown."""
    INTERNAL = "internal"
    """Something unexpected went wrong. The outcome may be unknown."""


SENTENCES: dict[ErrorCode, str] = {
    ErrorCode.INVALID_MESSAGE: "The message is not valid for this subject.",
    ErrorCode.DEADLINE_EXCEEDED: "The deadline of the request had passed.",
    ErrorCode.OVERLOADED: "Too many requests are waiting.",
    ErrorCode.UNKNOWN_TEAM: "There is no such team.",
    ErrorCode.IMPOSSIBLE_LIMITS: "The limits of the tier or the key are not possible.",
    ErrorCode.NOT_READY: "The service is not ready.",
    ErrorCode.STORE_UNAVAILABLE: "A store is unavailable.",
    ErrorCode.INTERNAL: "An internal error occurred.",
}
