"""Sliding windows of an endpoint: what the edge's configuration allows a key or an address."""

from typing import Annotated

import msgspec

from contracts.contract import Message, RequestReply
from contracts.ids import Address, KeyId, TeamId
from contracts.limits import Refusal

Token = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9]{1,32}$(?!\n)")]
"""A part of a header's name and of a Redis key."""


class Window(Message, frozen=True, kw_only=True):
    """So many requests at most in any stretch of time of this length."""

    group: Token
    """Whose endpoints are counted together."""
    label: Token
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    length_us: Annotated[int, msgspec.Meta(ge=1_000_000, le=366 * 86_400_000_000)]
    shadow: bool = False
    """Decided, counted and told, and refuses nobody."""


class WindowUse(Message, frozen=True, kw_only=True):
    """How many requests count, after the decision; times are unix microseconds of the Redis clock.

    The times are 0 where the window admits.
    """

    used: int
    admits_at_us: int = 0
    """When the oldest that keeps it full will have left."""
    empty_at_us: int = 0
    """When the newest will have left."""


class WindowsRequest(Message, frozen=True, kw_only=True):
    """May one more request come to an endpoint that has no preflight? Asked before it is served.

    From a key: `team_id` and `key_id`. From a caller without one: `address`.
    """

    windows: Annotated[tuple[Window, ...], msgspec.Meta(min_length=1, max_length=32)]
    deadline_us: int
    """Unix microseconds of the caller's clock; a request whose deadline has passed is dropped."""
    team_id: TeamId | None = None
    key_id: KeyId | None = None
    address: Address | None = None


class WindowsReply(Message, frozen=True, kw_only=True):
    """The decision; refused entered the request nowhere."""

    uses: tuple[WindowUse, ...]
    """In the order of the request's windows."""
    refusal: Refusal | None = None
    """None: it may come."""
    retry_after_us: int = 0
    """The longest wait until the windows that refused would admit."""


WINDOWS = RequestReply(
    subject="quota.v1.admission.windows",
    request=WindowsRequest,
    reply=WindowsReply,
    served_by="admission",
    summary="Judge a request without a preflight by its endpoint's windows; refused moves nothing.",
)


class EndpointWindows(Message, frozen=True, kw_only=True):
    """An endpoint, as in `POST /v1/messages`, and the windows that each API key has there."""

    endpoint: str
    windows: tuple[Window, ...] = ()


class EndpointWindowsRequest(Message, frozen=True, kw_only=True):
    """Every endpoint's windows, please."""


class EndpointWindowsReply(Message, frozen=True, kw_only=True):
    """Every endpoint, also without windows, by the configuration of the edge that answers."""

    endpoints: tuple[EndpointWindows, ...]


ENDPOINT_WINDOWS = RequestReply(
    subject="quota.v1.edge.windows",
    request=EndpointWindowsRequest,
    reply=EndpointWindowsReply,
    served_by="edge-proxy",
    summary="List the endpoints and the windows that the edges' configuration gives API keys.",
)
