"""What services ask tier-cache, the only reader of the database on the request path."""

from typing import Annotated

import msgspec

from contracts.admission import KeyLimits, Policy
from contracts.contract import Message, RequestReply
from contracts.ids import KeyId, TeamId
from contracts.usage import Price


class KeyResolveRequest(Message, frozen=True, kw_only=True):
    """Who holds this key? The public id only; the secret never leaves the edge."""

    key_id: KeyId


class KeyFacts(Message, frozen=True, kw_only=True):
    """What the edge needs to judge a key by itself."""

    key_id: KeyId
    team_id: TeamId
    secret_hash: str
    """HMAC-SHA256 of the secret under the pepper, hexadecimal."""
    expires_at_us: int | None = None
    """Unix microseconds, the database's clock; None: never."""
    revoked: bool = False
    allowed_models: tuple[str, ...] | None = None
    """None: every model of the configuration."""
    limits: KeyLimits | None = None
    """What the key has of its own; None: nothing."""
    old_secret_hash: str | None = None
    """The same of the secret before a rotation, accepted until `old_secret_until_us`."""
    old_secret_until_us: int | None = None
    """Unix microseconds, the database's clock; None: there is no old secret."""


class KeyResolveReply(Message, frozen=True, kw_only=True):
    """None: no such key, or its team is gone."""

    key: KeyFacts | None = None


class TierResolveRequest(Message, frozen=True, kw_only=True):
    """Put the team's tier into Redis."""

    team_id: TeamId


class TierResolveReply(Message, frozen=True, kw_only=True):
    """The tier that was read; `found` False: no such team, nothing written."""

    found: bool
    tier_id: str | None = None


class BalanceFillRequest(Message, frozen=True, kw_only=True):
    """Put the team's settled balance into Redis unless one is there."""

    team_id: TeamId


class BalanceFillReply(Message, frozen=True, kw_only=True):
    """`found` False: no such account, nothing written."""

    found: bool


class DayFillRequest(Message, frozen=True, kw_only=True):
    """Put into Redis what the team used on one day, unless it is there.

    The day is from `start_us` until before `end_us`, unix microseconds.
    """

    team_id: TeamId
    start_us: Annotated[int, msgspec.Meta(ge=0)]
    end_us: Annotated[int, msgspec.Meta(ge=0)]


class DayFillReply(Message, frozen=True, kw_only=True):
    """`found` False: no such team, nothing written."""

    found: bool


class SpendFillRequest(Message, frozen=True, kw_only=True):
    """Put into Redis what was spent in one period, unless it is there.

    The period is from `start_us` until before `end_us`, unix microseconds.
    """

    team_id: TeamId
    key_id: KeyId | None = None
    """By this key of the team; None: by all of them."""
    start_us: Annotated[int, msgspec.Meta(ge=0)]
    end_us: Annotated[int, msgspec.Meta(ge=0)]


class SpendFillReply(Message, frozen=True, kw_only=True):
    """`found` False: no such team, nothing written."""

    found: bool


class PoliciesRequest(Message, frozen=True, kw_only=True):
    """All policies, please."""


class PoliciesReply(Message, frozen=True, kw_only=True):
    """Every tier's numbers."""

    policies: tuple[Policy, ...]
    impossible: dict[str, str] = msgspec.field(default_factory=dict)
    """Tiers that have no policy, by id: why what is stored of them can't be one."""


class PricesRequest(Message, frozen=True, kw_only=True):
    """All prices that apply now or later, please."""


class PricesReply(Message, frozen=True, kw_only=True):
    """For each provider and model the version in effect and those to come."""

    prices: tuple[Price, ...]


KEY_RESOLVE = RequestReply(
    subject="quota.v1.cache.key.resolve",
    request=KeyResolveRequest,
    reply=KeyResolveReply,
    served_by="tier-cache",
    summary="Look an API key up by its public id.",
)
TIER_RESOLVE = RequestReply(
    subject="quota.v1.cache.tier.resolve",
    request=TierResolveRequest,
    reply=TierResolveReply,
    served_by="tier-cache",
    summary="Fill the team's tier mapping in Redis from the database.",
)
BALANCE_FILL = RequestReply(
    subject="quota.v1.cache.balance.fill",
    request=BalanceFillRequest,
    reply=BalanceFillReply,
    served_by="tier-cache",
    summary="Fill the team's balance in Redis from the settled balance, if it is missing.",
)
DAY_FILL = RequestReply(
    subject="quota.v1.cache.day.fill",
    request=DayFillRequest,
    reply=DayFillReply,
    served_by="tier-cache",
    summary="Fill the team's daily counters in Redis from its inference records, if missing.",
)
SPEND_FILL = RequestReply(
    subject="quota.v1.cache.spend.fill",
    request=SpendFillRequest,
    reply=SpendFillReply,
    served_by="tier-cache",
    summary="Fill what a team or a key spent in a period in Redis from its charges, if missing.",
)
POLICIES = RequestReply(
    subject="quota.v1.cache.policies",
    request=PoliciesRequest,
    reply=PoliciesReply,
    served_by="tier-cache",
    summary="List every tier's policy.",
)
PRICES = RequestReply(
    subject="quota.v1.cache.prices",
    request=PricesRequest,
    reply=PricesReply,
    served_by="tier-cache",
    summary="List the prices in effect and those to come.",
)
