"""Which tiers are possible.

What can't be calculated with is no `Policy`; beyond that a typing mistake is kept from becoming a
limit that limits nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from contracts.admission import LimitReason, Policy, Rates
from control_plane.domain import spend
from control_plane.domain.errors import InvalidError
from control_plane.domain.rates import check_burst, check_rates, check_shadow

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
    """See that the tier's numbers go together, and that each of its limits can limit something.

    Raises:
        InvalidError: names the field.

    """
    policy = _policy(numbers)
    for prefix, limit_field in (
        ("request", "rpm"),
        ("token", "tpm"),
        ("input_token", "input_tpm"),
        ("output_token", "output_tpm"),
    ):
        name = f"{prefix}_burst"
        check_burst(name, getattr(policy, name), limit_field, getattr(policy, limit_field))
    _check_time_zone(policy.time_zone)
    weights = policy.tpm_weights
    if weights is not None and not any(msgspec.structs.astuple(weights)):
        raise InvalidError("tpm_weights: some token must count.", field="tpm_weights")
    rates = {f"model_rates.{model}": each for model, each in policy.model_rates.items()}
    if policy.key_rates is not None:
        rates["key_rates"] = policy.key_rates
    for name, each in rates.items():
        check_rates(name, each)
    _check_parts(policy, rates)
    spend.check_spend("spend_limits", policy.spend_limits, policy.shadow)
    check_shadow("shadow", policy.shadow, tuple(reasons_of(policy)), "the tier has no such limit")


def problem(stored: TierNumbers) -> str | None:
    """Return why admission can't judge by a tier as it is stored; None: it can.

    Numbers that don't go well together are no problem: they were possible once.
    """
    try:
        _check_time_zone(_policy(stored).time_zone)
    except (msgspec.ValidationError, InvalidError) as error:
        return str(error)
    return None


def _policy(numbers: TierNumbers) -> Policy:
    """Return the numbers as a policy of no tier.

    Raises:
        msgspec.ValidationError: they can't be one.

    """
    own = {
        "tier_id": "",
        "rpm": numbers.rpm,
        "tpm": numbers.tpm,
        "request_burst": numbers.request_burst,
        "token_burst": numbers.token_burst,
    }
    return msgspec.convert({**numbers.limits, **own}, Policy)


def _check_time_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidError(
            f"time_zone: there is no time zone {name!r}.", field="time_zone"
        ) from error


def _check_parts(policy: Policy, rates: Mapping[str, Rates]) -> None:
    """See that no part of the team's limit is above it: whoever wrote that meant something else.

    A team's limit in shadow mode refuses nobody, so a part may be above it.
    """
    rpm = None if LimitReason.REQUESTS in policy.shadow else policy.rpm
    tpm = None if LimitReason.TOKENS in policy.shadow else policy.tpm
    parts: list[tuple[str, int | None, str, int | None]] = [
        ("input_tpm", policy.input_tpm, "tpm", tpm),
        ("output_tpm", policy.output_tpm, "tpm", tpm),
    ]
    for name, each in rates.items():
        parts += [(f"{name}.rpm", each.rpm, "rpm", rpm), (f"{name}.tpm", each.tpm, "tpm", tpm)]
    for part_field, part, whole_field, whole in parts:
        if part is not None and whole is not None and part > whole:
            raise InvalidError(
                f"{part_field}: must be at most {whole_field}, {whole}, which holds for all"
                " together.",
                field=part_field,
            )


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
    return {reason for reason, limit in has.items() if limit} | spend.reasons_of(
        policy.spend_limits
    )
