"""Further limits of tiers and keys, as operators give them and are told them; off unless given."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, PlainSerializer
from pydantic_core import PydanticCustomError

from contracts.admission import LimitReason
from contracts.limits import MOST_COUNT, MOST_RPM, MOST_TPM, MOST_WEIGHT
from contracts.spend import SpendMode, SpendPeriod, SpendScope
from control_plane.domain import spend
from control_plane.handlers.fields import Asked, AskedUsd, Model
from kit.money import floor_nano_usd, format_usd, usd_from_nano

_MOST_MODELS = 200
_MOST_SPEND_LIMITS = 4


def _weight(weight: Decimal) -> Decimal:
    if not 0 <= weight <= MOST_WEIGHT:
        raise PydanticCustomError(
            "weight", "must be between 0 and {most}", {"most": str(MOST_WEIGHT)}
        )
    return weight


Weight = Annotated[AskedUsd, AfterValidator(_weight), PlainSerializer(format_usd, return_type=str)]
Rpm = Annotated[int, Field(strict=True, ge=1, le=MOST_RPM)]
Tpm = Annotated[int, Field(strict=True, ge=1, le=MOST_TPM)]
RequestBurst = Annotated[int, Field(strict=True, ge=0, le=MOST_RPM)]
TokenBurst = Annotated[int, Field(strict=True, ge=0, le=MOST_TPM)]
Most = Annotated[int, Field(strict=True, ge=1, le=MOST_COUNT)]

_ONE = Decimal(1)


class TokenWeights(Asked):
    """How much a token of each class counts against every limit of tokens per minute."""

    input: Weight = _ONE
    cache_read: Weight = _ONE
    cache_write_5m: Weight = _ONE
    cache_write_1h: Weight = _ONE
    output: Weight = _ONE
    reasoning: Weight = _ONE


class Rates(Asked):
    """Requests and tokens per minute; one of them at least."""

    rpm: Rpm | None = None
    tpm: Tpm | None = None
    request_burst: RequestBurst = Field(
        default=0, description="Requests that may be in debt beyond the one in turn."
    )
    token_burst: TokenBurst = Field(
        default=0, description="Tokens that may be in debt while requests are still admitted."
    )


def _spend_limit(limit_usd: Decimal) -> Decimal:
    in_nano_usd = usd_from_nano(floor_nano_usd(limit_usd))
    if not 0 <= limit_usd < spend.CEILING_USD or in_nano_usd != limit_usd:
        raise PydanticCustomError(
            "spend_limit",
            "must be at least 0 and below {ceiling}, with {decimals} decimals at most",
            {"ceiling": str(spend.CEILING_USD), "decimals": spend.MAX_DECIMALS},
        )
    return limit_usd


SpendLimitUsd = Annotated[
    AskedUsd, AfterValidator(_spend_limit), PlainSerializer(format_usd, return_type=str)
]
Thresholds = Annotated[
    tuple[Annotated[int, Field(strict=True, ge=1, le=1_000)], ...], Field(max_length=20)
]


class AnySpendLimit(Asked):
    """Money that may be spent in a calendar day or month of `time_zone`."""

    period: SpendPeriod
    limit_usd: SpendLimitUsd | None = Field(description="0 blocks; null doesn't limit.")
    mode: SpendMode = Field(
        default=SpendMode.HARD,
        description="`hard` refuses once so much is spent; `soft` refuses nobody and is told.",
    )
    thresholds: Thresholds = Field(
        default=(50, 80, 95, 100),
        description="Percent of the limit at which an event and a webhook tell of it, once a"
        " period.",
    )


class SpendLimit(AnySpendLimit):
    """A limit of spend of a team, or of each of its API keys by itself."""

    scope: SpendScope = SpendScope.TEAM


class KeySpendLimit(AnySpendLimit):
    """A limit of spend of one API key, in the place of that which its tier gives every key."""

    scope: Literal[SpendScope.KEY] = SpendScope.KEY


class KeyLimits(Rates):
    """What a key has of its own. What isn't given stays as the tier's `key_rates` have it.

    The team's limits hold as well, whatever a key's say.
    """

    spend_limits: Annotated[tuple[KeySpendLimit, ...], Field(max_length=_MOST_SPEND_LIMITS)] = (
        Field(default=(), description="One of each period at most.")
    )
    shadow: tuple[LimitReason, ...] = Field(
        default=(),
        description="Limits of its own that are decided, counted and told, and refuse nobody.",
    )


class FurtherLimits(BaseModel):
    """The limits that a tier may have beyond requests and tokens per minute."""

    input_tpm: Tpm | None = Field(
        default=None, description="Input tokens per minute, cached input included, beside `tpm`."
    )
    output_tpm: Tpm | None = Field(
        default=None, description="Output tokens per minute, reasoning included, beside `tpm`."
    )
    input_token_burst: TokenBurst = Field(
        default=0, description="Tokens of `input_tpm` that may be in debt; at most as many."
    )
    output_token_burst: TokenBurst = Field(
        default=0, description="Tokens of `output_tpm` that may be in debt; at most as many."
    )
    tpm_weights: TokenWeights | None = Field(
        default=None,
        description="How much a token of each class counts per minute; null: one each.",
    )
    max_concurrency: Most | None = Field(
        default=None, description="Inferences of a team in flight at once."
    )
    daily_requests: Most | None = Field(
        default=None, description="Requests of a calendar day in `time_zone`."
    )
    daily_tokens: Most | None = Field(
        default=None,
        description="Tokens of a calendar day in `time_zone`, unweighted. A request also needs room"
        " for its input.",
    )
    time_zone: str = Field(
        default="UTC",
        max_length=64,
        description="IANA name of the zone at whose midnight days begin.",
        examples=["Europe/Berlin"],
    )
    key_rates: Rates | None = Field(
        default=None,
        description="What each API key may use of the team's limits, unless it has limits of its"
        " own.",
    )
    model_rates: Annotated[dict[Model, Rates], Field(max_length=_MOST_MODELS)] = Field(
        default={}, description="What a team may use of a model, by the name that clients ask for."
    )
    spend_limits: Annotated[tuple[SpendLimit, ...], Field(max_length=_MOST_SPEND_LIMITS)] = Field(
        default=(), description="One of each period and scope at most."
    )
    shadow: tuple[LimitReason, ...] = Field(
        default=(),
        description="Limits that are decided, counted and told, and refuse nobody.",
    )


def as_stored(further: FurtherLimits) -> dict[str, Any]:
    """Return what is kept of the limits: those that are given, as the policy's JSON has them."""
    return further.model_dump(
        mode="json", exclude_defaults=True, include=set(FurtherLimits.model_fields)
    )


def key_limits_as_stored(own: KeyLimits | None) -> dict[str, Any]:
    """Return what is kept of a key's own limits: those that are given; None: nothing."""
    if own is None:
        return {}
    stored = own.model_dump(mode="json", exclude_defaults=True)
    for limit in stored.get("spend_limits", ()):
        limit["scope"] = SpendScope.KEY.value
    return stored
