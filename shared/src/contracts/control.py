"""Change events: what the control plane tells everyone after its transaction has committed."""

from decimal import Decimal

from contracts.contract import Event, Message, Stream
from contracts.ids import KeyId, TeamId, TierId
from contracts.spend import Percent, SpendMode, SpendPeriod

CONTROL_EVENTS = Stream(
    name="CONTROL_EVENTS",
    subjects=("quota.v1.control.>",),
    owner="control-plane",
    summary="Changes of teams, tiers, keys, accounts and prices, in commit order per subject.",
    max_age_s=7 * 24 * 3600,
    max_bytes=1024**3,
)


class TierChanged(Message, frozen=True, kw_only=True):
    """A team has another tier. `version` is the team's tier version after the change."""

    team_id: TeamId
    tier_id: TierId
    version: int
    changed_at_us: int


class PolicyChanged(Message, frozen=True, kw_only=True):
    """A tier's numbers changed; whoever holds them in memory loads them again."""

    tier_id: TierId
    changed_at_us: int


class KeyRevoked(Message, frozen=True, kw_only=True):
    """A key must not be accepted any more, by no edge."""

    key_id: KeyId
    team_id: TeamId
    changed_at_us: int


class KeyChanged(Message, frozen=True, kw_only=True):
    """A key's limits, models, name or expiry changed; whoever remembers the key asks again."""

    key_id: KeyId
    team_id: TeamId
    changed_at_us: int


class AccountAdjusted(Message, frozen=True, kw_only=True):
    """A credit or an adjustment was committed to a team's account."""

    team_id: TeamId
    entry_id: str
    amount_usd: Decimal
    """Signed: positive raised the balance."""
    balance_usd: Decimal
    """The settled balance after it."""
    version: int
    """The account's version after it."""
    changed_at_us: int


class PriceChanged(Message, frozen=True, kw_only=True):
    """A price version was added; whoever holds prices in memory loads them again."""

    price_id: str
    provider: str
    model: str
    changed_at_us: int


class SpendThreshold(Message, frozen=True, kw_only=True):
    """A threshold of a spend limit was crossed; told once a period, by settled spend.

    The period is from `starts_at_us` until before `ends_at_us`. Times are unix microseconds of the
    database's clock.
    """

    team_id: TeamId
    key_id: KeyId | None = None
    """None: the limit is the team's."""
    period: SpendPeriod
    starts_at_us: int
    ends_at_us: int
    limit_usd: Decimal
    mode: SpendMode
    threshold_percent: Percent
    spent_usd: Decimal
    """All that was settled of the period by then."""
    crossed_at_us: int


TIER_CHANGED = Event(
    subject="quota.v1.control.tier.changed.{team_id}",
    message=TierChanged,
    emitted_by=("control-plane",),
    stream=CONTROL_EVENTS.name,
    summary="A team's tier changed; tier-cache evicts the mapping.",
)
POLICY_CHANGED = Event(
    subject="quota.v1.control.policy.changed.{tier_id}",
    message=PolicyChanged,
    emitted_by=("control-plane",),
    stream=CONTROL_EVENTS.name,
    summary="A tier's numbers changed; every admission loads the policies again.",
)
KEY_REVOKED = Event(
    subject="quota.v1.control.key.revoked.{key_id}",
    message=KeyRevoked,
    emitted_by=("control-plane",),
    stream=CONTROL_EVENTS.name,
    summary="A key was revoked; every edge forgets it.",
)
KEY_CHANGED = Event(
    subject="quota.v1.control.key.changed.{key_id}",
    message=KeyChanged,
    emitted_by=("control-plane",),
    stream=CONTROL_EVENTS.name,
    summary="A key's limits, models or expiry changed; every edge asks for it again.",
)
ACCOUNT_ADJUSTED = Event(
    subject="quota.v1.control.account.adjusted.{team_id}",
    message=AccountAdjusted,
    emitted_by=("control-plane",),
    stream=CONTROL_EVENTS.name,
    summary="A credit or adjustment was committed; tier-cache moves the cached balance.",
)
PRICE_CHANGED = Event(
    subject="quota.v1.control.price.changed",
    message=PriceChanged,
    emitted_by=("control-plane",),
    stream=CONTROL_EVENTS.name,
    summary="A price was added; every admission loads the prices again.",
)
SPEND_THRESHOLD = Event(
    subject="quota.v1.control.spend.threshold.{team_id}",
    message=SpendThreshold,
    emitted_by=("control-plane",),
    stream=CONTROL_EVENTS.name,
    summary="A threshold of a spend limit was crossed; settlement saw it, a webhook tells it too.",
)
