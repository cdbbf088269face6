"""Preflight, postflight and limits: what the edge and the control plane ask admission."""

from enum import StrEnum
from typing import Annotated

import msgspec

from contracts.contract import Message, RequestReply
from contracts.ids import AttemptNo, KeyId, TeamId, TierId
from contracts.limits import (
    Count,
    KeyLimits,
    LimitExplanation,
    LimitReason,
    LimitScope,
    LimitState,
    Policy,
    Rates,
    RateState,
    Refusal,
    TokenWeights,
)
from contracts.usage import Price, Usage
from contracts.windows import Window, WindowUse

__all__ = [
    "LEASE_RELEASE",
    "LEASE_RENEW",
    "LIMITS",
    "POSTFLIGHT",
    "PREFLIGHT",
    "Decision",
    "Deployment",
    "KeyLimits",
    "Lease",
    "LeaseReply",
    "LeaseRequest",
    "LimitExplanation",
    "LimitReason",
    "LimitScope",
    "LimitState",
    "LimitsReply",
    "LimitsRequest",
    "Policy",
    "PostflightReply",
    "PostflightRequest",
    "PreflightReply",
    "PreflightRequest",
    "RateState",
    "Rates",
    "Refusal",
    "TokenWeights",
]

Model = Annotated[str, msgspec.Meta(max_length=256)]
LeaseName = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class Deployment(Message, frozen=True, kw_only=True):
    """One place an inference could be sent to: a provider of the configuration and its model."""

    provider: str
    model: str


class Decision(StrEnum):
    """What preflight decided. Everything but `ALLOWED` moved nothing."""

    ALLOWED = "allowed"
    MODEL_NOT_PRICED = "model_not_priced"
    BALANCE_NEGATIVE = "balance_negative"
    RATE_LIMITED = "rate_limited"
    """By any limit but those of spend; `refusal` says which."""
    SPEND_LIMITED = "spend_limited"
    """By a limit of spend; `refusal` says which."""
    NEVER_ADMISSIBLE = "never_admissible"
    """The request alone is larger than a limit: waiting doesn't help."""


class Lease(Message, frozen=True, kw_only=True):
    """A place among the team's inferences in flight, held until released or expired."""

    name: LeaseName
    life_us: int
    """It expires this long after it was taken or last renewed."""


class PreflightRequest(Message, frozen=True, kw_only=True):
    """May this team call now? Names every deployment that the inference could be sent to."""

    team_id: TeamId
    key_id: KeyId
    inference_id: str
    model: str
    deployments: tuple[Deployment, ...]
    deadline_us: int
    """Unix microseconds of the caller's clock; a request whose deadline has passed is dropped."""
    attempt_no: AttemptNo = 1
    """The attempt that will begin, if admitted."""
    estimated_input_tokens: Count = 0
    """What the input has at least; asked of the day's tokens, and kept nowhere."""
    further: bool = False
    """A retry or a fallback of an inference that was admitted: only the balance is judged, nothing
    moves, and the reply pins nothing."""
    key_limits: KeyLimits | None = None
    """What the key has of its own; None: nothing."""
    windows: tuple[Window, ...] = ()
    """Those of the endpoint that was called."""


class PreflightReply(Message, frozen=True, kw_only=True):
    """The decision, and what it pins for the rest of the inference."""

    decision: Decision
    reason: str | None = None
    """Which limit refused: a value of `LimitReason`."""
    retry_after_us: int = 0
    """The longest wait until the limits that refused would admit."""
    limits: LimitState | None = None
    policy: Policy | None = None
    """The tier's numbers as this key meets them: its own limits stand in `key_rates`."""
    prices: tuple[Price | None, ...] = ()
    """For each deployment of the request, in its order, the pinned price; None: not priced."""
    refusal: Refusal | None = None
    shadowed: tuple[LimitReason, ...] = ()
    """Limits in shadow mode that would have refused; the attempt's usage isn't charged to them."""
    lease: Lease | None = None
    """None: the tier doesn't limit concurrency, or the request was refused."""
    windows: tuple[WindowUse, ...] = ()
    """In the order of the request's; empty where they were not judged."""


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
    key_id: KeyId | None = None
    model: Model | None = None
    """As in the preflight; without them what is limited by key and model isn't charged."""
    shadowed: tuple[LimitReason, ...] = ()
    """From the preflight's reply."""
    lease: LeaseName | None = None
    """The lease that ends with this attempt; None: there is none, or it goes on."""


class PostflightReply(Message, frozen=True, kw_only=True):
    """The state after the charge."""

    limits: LimitState
    balance_known: bool
    """False: there was no balance in the cache; nothing was debited and none was created."""


class LeaseRequest(Message, frozen=True, kw_only=True):
    """A lease to be renewed for its full life, or to be given back."""

    team_id: TeamId
    lease: LeaseName
    deadline_us: int
    """Unix microseconds of the caller's clock; a request whose deadline has passed is dropped."""


class LeaseReply(Message, frozen=True, kw_only=True):
    """`held` False: the lease had expired. A renewal has taken it again: the call is in flight."""

    held: bool


class LimitsRequest(Message, frozen=True, kw_only=True):
    """What would the limits say of this team now? Moves nothing.

    With a key or a model the limits of those are told as well.
    """

    team_id: TeamId
    key_id: KeyId | None = None
    model: Model | None = None
    key_limits: KeyLimits | None = None
    """What the key has of its own; None: nothing."""
    tier_id: TierId | None = None
    """The team's tier, for where Redis doesn't hold it."""
    windows: Annotated[tuple[Window, ...], msgspec.Meta(max_length=32)] = ()
    """Those of an endpoint, told for the key."""


class LimitsReply(Message, frozen=True, kw_only=True):
    """A team's live state in Redis. Absent values are not cached at the moment."""

    now_us: int
    """The Redis clock, unix microseconds."""
    request_tat_us: int | None = None
    token_tat_us: int | None = None
    tier_id: str | None = None
    """As cached."""
    balance_nano_usd: int | None = None
    balance_version: int | None = None
    limits: LimitState | None = None
    """None when the tier is neither cached nor given, or its policy not known here."""
    explained: tuple[LimitExplanation, ...] = ()
    """Every limit of the tier that would be asked, none where `limits` is None, and the windows."""
    problem: str | None = None
    """Why the tier as it is stored can't be a policy; its teams are refused. None: it can."""
    decides: LimitReason | None = None
    """Which of all of them would refuse the next request; None: none of those that are known."""


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
LEASE_RENEW = RequestReply(
    subject="quota.v1.admission.lease.renew",
    request=LeaseRequest,
    reply=LeaseReply,
    served_by="admission",
    summary="Keep the lease of a call that is still in flight.",
)
LEASE_RELEASE = RequestReply(
    subject="quota.v1.admission.lease.release",
    request=LeaseRequest,
    reply=LeaseReply,
    served_by="admission",
    summary="Give back the lease of a call that ended without a postflight.",
)
LIMITS = RequestReply(
    subject="quota.v1.admission.limits",
    request=LimitsRequest,
    reply=LimitsReply,
    served_by="admission",
    summary="Tell a team's live limits and cached balance without moving anything.",
)
