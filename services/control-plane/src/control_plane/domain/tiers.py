"""Which tiers are possible.

The bounds keep every time the limits calculate with far below 2⁵³ microseconds, where Redis' own
arithmetic is exact, and keep a typing mistake from becoming a limit that limits nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from contracts.admission import LimitReason, Policy, Rates
from control_plane.domain.errors import InvalidError

# One request costs 60,000,000 / RPM microseconds, rounded up: beyond this RPM it would be the
# rounding that limits.
MAX_RPM = 60_000_000
MAX_TPM = 10**12
MAX_BURST_MINUTES = 24 * 60
MAX_COUNT = 10**15
MAX_WEIGHT = 1_000

_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class TierNumbers:
    """The numbers of a tier; each at least 1, bursts at least 0."""

    rpm: int
    tpm: int
    request_burst: int
    token_burst: int
    limits: Mapping[str, Any] = field(default_factory=lambda: _NONE)
    """The further limits that are given, by the policy's names, as JSON has them."""


def check(numbers: TierNumbers) -> None:
    """See that a burst is at most a day of its limit, and that the further limits go together.

    A debt of more than a day is a mistake, not a policy.

    Raises:
        InvalidError: names the field.

    """
    for burst_field, burst, rate_field, rate in (
        ("request_burst", numbers.request_burst, "rpm", numbers.rpm),
        ("token_burst", numbers.token_burst, "tpm", numbers.tpm),
    ):
        if burst > rate * MAX_BURST_MINUTES:
            raise InvalidError(
                f"{burst_field}: must be at most {MAX_BURST_MINUTES} × {rate_field}"
                f" ({rate * MAX_BURST_MINUTES}), a day of the limit.",
                field=burst_field,
            )
    _check_limits(msgspec.convert({"tier_id": "", "rpm": 1, "tpm": 1, **numbers.limits}, Policy))


def _check_limits(policy: Policy) -> None:
    try:
        ZoneInfo(policy.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidError(
            f"time_zone: there is no time zone {policy.time_zone!r}.", field="time_zone"
        ) from error
    weights = policy.tpm_weights
    if weights is not None and not any(msgspec.structs.astuple(weights)):
        raise InvalidError("tpm_weights: some token must count.", field="tpm_weights")
    rates = {f"model_rates.{model}": each for model, each in policy.model_rates.items()}
    for name, each in {"key_rates": policy.key_rates, **rates}.items():
        if each == Rates():
            raise InvalidError(f"{name}: needs rpm, tpm, or both.", field=name)
    for reason in policy.shadow:
        if reason not in reasons_of(policy):
            raise InvalidError(f"shadow: the tier has no limit {reason.value!r}.", field="shadow")


def reasons_of(policy: Policy) -> set[LimitReason]:
    """Return the limits that a policy has for some request."""
    key, models = policy.key_rates or Rates(), policy.model_rates.values()
    has = {
        LimitReason.REQUESTS: True,
        LimitReason.TOKENS: True,
        LimitReason.INPUT_TOKENS: policy.input_tpm,
        LimitReason.OUTPUT_TOKENS: policy.output_tpm,
        LimitReason.KEY_REQUESTS: key.rpm,
        LimitReason.KEY_TOKENS: key.tpm,
        LimitReason.MODEL_REQUESTS: any(each.rpm for each in models),
        LimitReason.MODEL_TOKENS: any(each.tpm for each in models),
        LimitReason.CONCURRENCY: policy.max_concurrency,
        LimitReason.DAY_REQUESTS: policy.daily_requests,
        LimitReason.DAY_TOKENS: policy.daily_tokens,
    }
    return {reason for reason, limit in has.items() if limit}
