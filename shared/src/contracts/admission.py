"""Preflight, postflight and limits: what the edge and the control plane ask admission."""

from enum import StrEnum
from typing import Annotated

import msgspec

from contracts.contract import Message, RequestReply
from contracts.ids import AttemptNo, KeyId, TeamId
from contracts.usage import Price, Usage


class Deployment(Message, frozen=True, kw_only=True):
    """One place an inference could be sent to: a provider of the configuration and its model."""

    provider: str
    model: str


class Policy(Message, frozen=True, kw_only=True):
    """The numbers of a tier at one moment; a call in flight keeps those it was admitted under."""

    tier_id: str
    rpm: Annotated[int, msgspec.Meta(ge=1)]
    tpm: Annotated[int, msgspec.Meta(ge=1)]
    request_burst: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Requests that may be in debt beyond the one in turn."""
    token_burst: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Tokens that may be in debt while requests are still admitted."""


class LimitState(Message, frozen=True, kw_only=True):
    """Both limits as the script left them; the debts are microseconds of the Redis clock."""

    limit_requests: int
    remaining_requests: int
    reset_requests_us: int
    limit_tokens: int
    remaining_tokens: int
    reset_tokens_us: int


class Decision(StrEnum):
    """What preflight decided. Everything but `ALLOWED` moved nothing."""

    ALLOWED = "allowed"
    MODEL_NOT_PRICED = "model_not_priced"
    BALANCE_NEGATIVE = "balance_negative"
    RATE_LIMITED = "rate_limited"


class PreflightRequest(Message, frozen=True, kw_only=True):
    """May this team call now? Names every deployment that the inference could be sent to."""

    team_id: TeamId
    key_id: KeyId
    inference_id: str
    model: str
    deployments: tuple[Deployment, ...]
    deadline_us: int
    """Unix microseconds of the caller's clock; a request whose deadline has passed is dropped."""


class PreflightReply(Message, frozen=True, kw_only=True):
    """The decision, and what it pins for the rest of the inference."""

    decision: Decision
    reason: str | None = None
    """Which limit refused: `requests` or `tokens`."""
    retry_after_us: int = 0
    """The longest wait until the limits that refused would admit."""
    limits: LimitState | None = None
    policy: Policy | None = None
    prices: tuple[Price | None, ...] = ()
    """For each deployment of the request, in its order, the pinned price; None: not priced."""


class PostflightRequest(Message, frozen=True, kw_only=True):
    """Charge the token limit and the balance cache with what one attempt really used."""

    team_id: TeamId
    inference_id: str
    attempt_no: AttemptNo
    usage: Usage
    policy: Policy
    price: Price
    deadline_us: int
    """Unix microseconds of the caller's clock; a request whose deadline has passed is dropped."""


class PostflightReply(Message, frozen=True, kw_only=True):
    """The state after the charge."""

    limits: LimitState
    balance_known: bool
    """False: there was no balance in the cache; nothing was debited and none was created."""


class LimitsRequest(Message, frozen=True, kw_only=True):
    """What would the limits say of this team now? Moves nothing."""

    team_id: TeamId


class LimitsReply(Message, frozen=True, kw_only=True):
    """A team's live state in Redis. Absent values are not cached at the moment."""

    now_us: int
    """The Redis clock, unix microseconds."""
    request_tat_us: int | None = None
    token_tat_us: int | None = None
    tier_id: str | None = None
    balance_nano_usd: int | None = None
    balance_version: int | None = None
    limits: LimitState | None = None
    """None when the tier is not cached, or its policy not known here."""


PREFLIGHT = RequestReply(
    subject="quota.v1.admission.preflight",
    request=PreflightRequest,
    reply=PreflightReply,
    served_by="admission",
    summary="Decide whether a team may call now; refused moves nothing.",
)
POSTFLIGHT = RequestReply(
    subject="quota.v1.admission.postflight",
    request=PostflightRequest,
    reply=PostflightReply,
    served_by="admission",
    summary="Advance the token TAT by real usage and subtract the rough debit; sent once.",
)
LIMITS = RequestReply(
    subject="quota.v1.admission.limits",
    request=LimitsRequest,
    reply=LimitsReply,
    served_by="admission",
    summary="Tell a team's live limits and cached balance without moving anything.",
)
