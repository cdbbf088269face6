"""Why an admin request is refused.

ControlPlaneError
├── NotFoundError
├── ConflictError
├── InvalidError
├── IdempotencyError
│   ├── KeyReusedError
│   └── KeyInUseError
└── UnavailableError

Each has a code for programs and a message for people; handlers/errors.py turns them into HTTP.
"""


class ControlPlaneError(Exception):
    """The request was refused; nothing was changed."""

    code = "refused"

    def __init__(
        self, message: str | None = None, *, code: str | None = None, field: str | None = None
    ) -> None:
        """`field` is the path of the field that is wrong, such as `usd_per_million.input`."""
        self.message = message or " ".join((type(self).__doc__ or "").split())
        self.code = code or type(self).code
        self.field = field
        super().__init__(self.message)


class NotFoundError(ControlPlaneError):
    """There is no such thing."""

    code = "not_found"


class ConflictError(ControlPlaneError):
    """It exists already."""

    code = "conflict"


class InvalidError(ControlPlaneError):
    """A value is not possible."""

    code = "invalid_value"


class IdempotencyError(ControlPlaneError):
    """The idempotency key can't be used for this request."""


class KeyReusedError(IdempotencyError):
    """The idempotency key was used for another request; use a new key for a new request."""

    code = "idempotency_key_reused"


class KeyInUseError(IdempotencyError):
    """The first request with this idempotency key is still running; ask again."""

    code = "idempotency_key_in_use"


class UnavailableError(ControlPlaneError):
    """Something the control plane needs doesn't answer; try again."""

    code = "service_unavailable"


def team_not_found(team_id: str) -> NotFoundError:
    """Return the error for a team that doesn't exist."""
    return NotFoundError(f"There is no team {team_id}.", code="team_not_found")
