"""Limits: a tier's numbers, which limit refused, and the state of each."""

from decimal import Decimal
from enum import StrEnum
from typing import Annotated

import msgspec

from contracts.contract import Message
from contracts.spend import SpendLimit

# Within these every time that limits are calculated with stays far below 2⁵³ microseconds. One
# request costs 60,000,000 / RPM of them, rounded up: beyond this RPM the rounding would limit.
MOST_RPM = 60_000_000
MOST_TPM = 10**12
MOST_COUNT = 10**15
MOST_WEIGHT = 1_000

Rpm = Annotated[int, msgspec.Meta(ge=1, le=MOST_RPM)]
Tpm = Annotated[int, msgspec.Meta(ge=1, le=MOST_TPM)]
Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_COUNT)]


class LimitReason(StrEnum):
    """Every limit that can refuse; a closed set, in the order in which equal waits are told."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    INPUT_TOKENS = "input_tokens"
    OUTPUT_TOKENS = "output_tokens"
    KEY_REQUESTS = "key_requests"
    KEY_TOKENS = "key_tokens"
    MODEL_REQUESTS = "model_requests"
    MODEL_TOKENS = "model_tokens"
    CONCURRENCY = "concurrency"
    DAY_REQUESTS = "day_requests"
    DAY_TOKENS = "day_tokens"
    DAY_SPEND = "day_spend"
    MONTH_SPEND = "month_spend"
    KEY_DAY_SPEND = "key_day_spend"
    KEY_MONTH_SPEND = "key_month_spend"
    ENDPOINT = "endpoint"
    """A window of the edge's configuration, no limit of the tier."""


class LimitScope(StrEnum):
    """Whose limit it is: the team's, of one of its keys, or of the team at one model.

    Or of a client's address, for callers without a key.
    """

    TEAM = "team"
    KEY = "key"
    MODEL = "model"
    ADDRESS = "address"


class Rates(Message, frozen=True, kw_only=True):
    """Requests and tokens per minute of one key, or of a team at one model; None: not limited."""

    rpm: Rpm | None = None
    tpm: Tpm | None = None
    request_burst: Count = 0
    """Requests of `rpm` that may be in debt beyond the one in turn."""
    token_burst: Count = 0
    """Tokens of `tpm` that may be in debt while requests are still admitted."""


class KeyLimits(Rates, frozen=True, kw_only=True):
    """The limits that one API key has of its own.

    Each that it has takes the place of what the tier gives every key (`Policy.key_rates`), with its
    burst and whether it is in shadow mode; what it doesn't have stays the tier's.
    """

    spend_limits: tuple[SpendLimit, ...] = ()
    """Of scope `key`, at most one of each period: in the place of the tier's for every key."""
    shadow: tuple[LimitReason, ...] = ()
    """Limits of its own that are decided, counted and told, and refuse nobody."""


class TokenWeights(Message, frozen=True, kw_only=True):
    """How much a token of each class counts against the limits per minute; exact decimals."""

    input: Decimal = Decimal(1)
    cache_read: Decimal = Decimal(1)
    cache_write_5m: Decimal = Decimal(1)
    cache_write_1h: Decimal = Decimal(1)
    output: Decimal = Decimal(1)
    reasoning: Decimal = Decimal(1)

    def __post_init__(self) -> None:
        """See that each is a number that tokens can be multiplied by."""
        for name, weight in msgspec.structs.asdict(self).items():
            if not (weight.is_finite() and 0 <= weight <= MOST_WEIGHT):
                raise ValueError(f"`{name}` must be between 0 and {MOST_WEIGHT}")


class Policy(Message, frozen=True, kw_only=True):
    """The numbers of a tier at one moment; a call in flight keeps those it was admitted under.

    All but the first three are off unless given.
    """

    tier_id: str
    rpm: Rpm
    tpm: Tpm
    request_burst: Count = 0
    """Requests that may be in debt beyond the one in turn."""
    token_burst: Count = 0
    """Tokens that may be in debt while requests are still admitted."""
    input_tpm: Tpm | None = None
    """Input tokens per minute, cached input included, beside `tpm`."""
    output_tpm: Tpm | None = None
    """Output tokens per minute, reasoning included, beside `tpm`."""
    input_token_burst: Count = 0
    """Tokens of `input_tpm` that may be in debt while requests are still admitted."""
    output_token_burst: Count = 0
    """Tokens of `output_tpm` that may be in debt while requests are still admitted."""
    tpm_weights: TokenWeights | None = None
    """For every limit of tokens per minute; None: each token counts as one."""
    max_concurrency: Count | None = None
    """Inferences in flight at once; 0 admits none."""
    daily_requests: Count | None = None
    daily_tokens: Count | None = None
    """Tokens of a calendar day, unweighted."""
    time_zone: str = "UTC"
    """Where the days of the daily limits, and the periods of spend, begin: an IANA name."""
    key_rates: Rates | None = None
    """What each API key of the team may use of the team's limits, unless it has its own."""
    model_rates: dict[str, Rates] = msgspec.field(default_factory=dict)
    """What the team may use of a model, by the name that clients ask for."""
    spend_limits: tuple[SpendLimit, ...] = ()
    """At most one of each period and scope."""
    shadow: tuple[LimitReason, ...] = ()
    """Limits that are decided, counted and told, and refuse nobody."""


class RateState(Message, frozen=True, kw_only=True):
    """One limit per minute: the limit, what remains of it, and the debt in Redis microseconds."""

    limit: int
    remaining: int
    reset_us: int


class LimitState(Message, frozen=True, kw_only=True):
    """The limits as the script left them; the debts are microseconds of the Redis clock.

    None: the tier doesn't have this limit, or its state isn't known.
    """

    limit_requests: int
    remaining_requests: int
    reset_requests_us: int
    limit_tokens: int
    remaining_tokens: int
    reset_tokens_us: int
    input_tokens: RateState | None = None
    output_tokens: RateState | None = None
    remaining_day_requests: int | None = None
    remaining_day_tokens: int | None = None


class Refusal(Message, frozen=True, kw_only=True):
    """The limit that refused: of those that did, the one with the longest wait.

    A limit of spend comes before the others. Its amounts are integer nano-USD (10⁻⁹ USD).
    """

    reason: LimitReason
    scope: LimitScope
    limit: int
    """What the tier says: per minute, a period, or at once."""
    used: int
    """How much of it is in debt, counted in this period, or in flight."""
    resets_at_us: int | None = None
    """When nothing of it is used any more, unix microseconds of the Redis clock; None: open."""
    window: str | None = None
    """Of an endpoint's limit: its group and its label."""


class LimitExplanation(Message, frozen=True, kw_only=True):
    """One limit as the next request would meet it; amounts of spend are integer nano-USD."""

    reason: LimitReason
    scope: LimitScope
    limit: int
    known: bool = True
    """False: its counter isn't cached; the next request has it counted from the database."""
    used: int = 0
    remaining: int = 0
    reset_us: int | None = None
    """Microseconds until nothing of it is used any more; None: open."""
    retry_after_us: int = 0
    """Microseconds until it would admit; 0: it would."""
    shadow: bool = False
    window: str | None = None
    """Of an endpoint's limit: its group and its label."""
