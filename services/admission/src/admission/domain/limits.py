"""Which limits a policy has for a request, and when each of them refuses.

A limit is of one of four kinds. A debt refuses while its TAT, less its burst, lies ahead of now.
A lease refuses while as many others are in flight as may be. A count refuses when it and what is
asked would be over the day's limit. Spend refuses once as much was spent in its period as may be.
All of them stand in the order in which equal waits are told.
"""

from collections.abc import Iterator

import msgspec

from admission.domain.policy import (
    cost_at,
    interval_us,
    rate_bursts_us,
    request_burst_us,
    token_burst_us,
)
from contracts.admission import LimitReason, LimitScope, Policy, Rates
from contracts.spend import SpendLimit, SpendMode, SpendPeriod, SpendScope
from kit.money import floor_nano_usd

# What a refusal by concurrency says: a call ends soon, and nobody knows when.
LEASE_WAIT_US = 1_000_000


class Subject(msgspec.Struct, frozen=True):
    """Who asks for what; None: not told, so limits by it are not asked."""

    key_id: str | None = None
    model: str | None = None


class DebtLimit(msgspec.Struct, frozen=True):
    """Requests or tokens per minute. `advance_us` is what an admission adds to the TAT."""

    reason: LimitReason
    per_minute: int
    advance_us: int
    burst_us: int
    shadow: bool


class LeaseLimit(msgspec.Struct, frozen=True):
    """Inferences in flight at once."""

    reason: LimitReason
    most: int
    shadow: bool


class CountLimit(msgspec.Struct, frozen=True):
    """Requests or tokens of a calendar day. `added` is what an admission counts."""

    reason: LimitReason
    most: int
    added: int
    shadow: bool


class SpendCap(msgspec.Struct, frozen=True):
    """Money of a calendar day or month, nano-USD. An admission adds nothing: a call's end does."""

    reason: LimitReason
    most: int
    period: SpendPeriod
    shadow: bool


Limit = DebtLimit | LeaseLimit | CountLimit | SpendCap

_SPEND_REASONS = {
    (SpendScope.TEAM, SpendPeriod.DAY): LimitReason.DAY_SPEND,
    (SpendScope.TEAM, SpendPeriod.MONTH): LimitReason.MONTH_SPEND,
    (SpendScope.KEY, SpendPeriod.DAY): LimitReason.KEY_DAY_SPEND,
    (SpendScope.KEY, SpendPeriod.MONTH): LimitReason.KEY_MONTH_SPEND,
}
_SCOPES = {
    LimitReason.KEY_DAY_SPEND: LimitScope.KEY,
    LimitReason.KEY_MONTH_SPEND: LimitScope.KEY,
    LimitReason.KEY_REQUESTS: LimitScope.KEY,
    LimitReason.KEY_TOKENS: LimitScope.KEY,
    LimitReason.MODEL_REQUESTS: LimitScope.MODEL,
    LimitReason.MODEL_TOKENS: LimitScope.MODEL,
}


def scope_of(reason: LimitReason) -> LimitScope:
    """Return whose limit it is."""
    return _SCOPES.get(reason, LimitScope.TEAM)


def limits_of(policy: Policy, subject: Subject) -> tuple[Limit, ...]:
    """Return every limit that this request meets: requests, tokens, then the further ones."""
    return (
        DebtLimit(
            LimitReason.REQUESTS,
            policy.rpm,
            interval_us(policy),
            request_burst_us(policy),
            LimitReason.REQUESTS in policy.shadow,
        ),
        DebtLimit(
            LimitReason.TOKENS,
            policy.tpm,
            0,
            token_burst_us(policy),
            LimitReason.TOKENS in policy.shadow,
        ),
        *further_limits(policy, subject),
    )


def further_limits(policy: Policy, subject: Subject) -> tuple[Limit, ...]:
    """Return the limits beyond requests and tokens; most policies have none."""
    return (
        *_debts(policy, subject),
        *_lease(policy),
        *_counts(policy),
        *_spend(policy, subject),
    )


def _debts(policy: Policy, subject: Subject) -> Iterator[DebtLimit]:
    reason, per_minute = LimitReason.INPUT_TOKENS, policy.input_tpm
    if per_minute is not None:
        yield _tokens(policy, reason, per_minute, cost_at(per_minute, policy.input_token_burst))
    reason, per_minute = LimitReason.OUTPUT_TOKENS, policy.output_tpm
    if per_minute is not None:
        yield _tokens(policy, reason, per_minute, cost_at(per_minute, policy.output_token_burst))
    if policy.key_rates is not None and subject.key_id is not None:
        reasons = (LimitReason.KEY_REQUESTS, LimitReason.KEY_TOKENS)
        yield from _rates(policy, policy.key_rates, reasons)
    if policy.model_rates and subject.model is not None:
        rates = policy.model_rates.get(subject.model, Rates())
        yield from _rates(policy, rates, (LimitReason.MODEL_REQUESTS, LimitReason.MODEL_TOKENS))


def _rates(
    policy: Policy, rates: Rates, reasons: tuple[LimitReason, LimitReason]
) -> Iterator[DebtLimit]:
    request_burst, token_burst = rate_bursts_us(rates)
    if rates.rpm is not None:
        shadow = reasons[0] in policy.shadow
        yield DebtLimit(reasons[0], rates.rpm, cost_at(rates.rpm, 1), request_burst, shadow)
    if rates.tpm is not None:
        yield _tokens(policy, reasons[1], rates.tpm, token_burst)


def _tokens(policy: Policy, reason: LimitReason, per_minute: int, burst_us: int) -> DebtLimit:
    return DebtLimit(reason, per_minute, 0, burst_us, reason in policy.shadow)


def _lease(policy: Policy) -> Iterator[LeaseLimit]:
    reason = LimitReason.CONCURRENCY
    if policy.max_concurrency is not None:
        yield LeaseLimit(reason, policy.max_concurrency, reason in policy.shadow)


def _counts(policy: Policy) -> Iterator[CountLimit]:
    reason = LimitReason.DAY_REQUESTS
    if policy.daily_requests is not None:
        yield CountLimit(reason, policy.daily_requests, 1, reason in policy.shadow)
    reason = LimitReason.DAY_TOKENS
    if policy.daily_tokens is not None:
        yield CountLimit(reason, policy.daily_tokens, 0, reason in policy.shadow)


def _spend(policy: Policy, subject: Subject) -> Iterator[SpendCap]:
    for limit in policy.spend_limits:
        if limit.limit_usd is None or (limit.scope is SpendScope.KEY and subject.key_id is None):
            continue
        reason = spend_reason(limit)
        # One that refuses nobody is in shadow mode, whichever way it was said.
        shadow = limit.mode is SpendMode.SOFT or reason in policy.shadow
        yield SpendCap(reason, floor_nano_usd(limit.limit_usd), limit.period, shadow)


SPEND_REASONS = frozenset(_SPEND_REASONS.values())


def spend_reason(limit: SpendLimit) -> LimitReason:
    """Return by which reason a limit of spend refuses."""
    return _SPEND_REASONS[limit.scope, limit.period]


def counts(policy: Policy) -> bool:
    """Return whether a policy counts anything by the calendar."""
    return (
        policy.daily_requests is not None
        or policy.daily_tokens is not None
        or bool(policy.spend_limits)
    )


def asked_of(limit: CountLimit, estimated_input_tokens: int) -> int:
    """Return what a request asks of a day: itself, or at least one token."""
    return 1 if limit.added else max(1, estimated_input_tokens)


def never_admissible(policy: Policy, estimated_input_tokens: int) -> bool:
    """Return whether a request alone is over a day's tokens, so that no day will admit it."""
    return (
        policy.daily_tokens is not None
        and LimitReason.DAY_TOKENS not in policy.shadow
        and estimated_input_tokens > policy.daily_tokens
    )
