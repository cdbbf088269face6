"""A policy's limits as the Redis scripts are told them: where each lives, and its numbers."""

from collections.abc import Sequence

import msgspec

from admission.domain.charging import End, added_to, tokens_for
from admission.domain.limits import (
    CountLimit,
    DebtLimit,
    LeaseLimit,
    Limit,
    Subject,
    asked_of,
    further_limits,
)
from admission.domain.money import rough_debit_nano_usd
from admission.domain.policy import cost_at, cost_us, interval_us, request_burst_us, token_burst_us
from admission.domain.tokens import counted
from contracts.admission import KeyLimits, LimitReason, Policy
from contracts.usage import Price, Usage
from contracts.windows import Window
from kit.calendar import days_around
from redis_scripts import (
    ANY_DAY,
    Charge,
    CountCharge,
    CountTerms,
    DayWindow,
    DebtCaps,
    DebtCharge,
    DebtTerms,
    Further,
    FurtherCharge,
    LeaseEnd,
    LeaseTerms,
    PreflightTerms,
    WindowTerms,
)
from redis_scripts.keys import (
    INPUT_TAT,
    LEASES,
    OUTPUT_TAT,
    Place,
    day_counter,
    key_tat,
    model_tat,
    window_log,
)


class Asking(msgspec.Struct, frozen=True):
    """One request for an admission. `lease` is the name of the lease it would take."""

    team_id: str
    subject: Subject
    lease: str
    estimated_input_tokens: int = 0
    key_limits: KeyLimits | None = None
    """What the subject's key has of its own."""
    windows: tuple[Window, ...] = ()
    """Those of the endpoint that was called."""


class Used(msgspec.Struct, frozen=True):
    """What one attempt used, and what it was admitted under."""

    subject: Subject
    policy: Policy
    usage: Usage
    price: Price
    shadowed: tuple[LimitReason, ...] = ()
    """Limits that would have refused it in shadow mode; its tokens aren't charged to them."""
    lease: str | None = None
    """The lease that ends with it."""


class Terms:
    """Makes the scripts' terms; leases live `lease_life_us`."""

    def __init__(self, lease_life_us: int) -> None:
        self.lease_life_us = lease_life_us

    def judged(self, policy: Policy, asking: Asking, caps: DebtCaps, now_us: int) -> PreflightTerms:
        """Return preflight's terms; `now_us` is our wall clock, near which the days are."""
        days = window(policy, now_us)
        limits = further_limits(policy, asking.subject)
        return PreflightTerms(
            policy.tier_id,
            interval_us(policy),
            request_burst_us(policy),
            token_burst_us(policy),
            caps,
            (
                LimitReason.REQUESTS in policy.shadow,
                LimitReason.TOKENS in policy.shadow,
            ),
            tuple(self._term(limit, asking, caps, days) for limit in limits),
            days,
            window_terms(asking.windows, asking.lease, asking.subject.key_id or ""),
        )

    def _term(self, limit: Limit, asking: Asking, caps: DebtCaps, days: DayWindow) -> Further:
        match limit:
            case DebtLimit(reason, _, advance_us, burst_us, shadow):
                cap_us = caps.request_us if advance_us else caps.token_us
                place = _tat(reason, asking.subject)
                return DebtTerms(place, advance_us, burst_us, cap_us, shadow)
            case LeaseLimit(_, most, shadow):
                return LeaseTerms(LEASES, most, asking.lease, self.lease_life_us, shadow)
            case CountLimit(reason, most, added, shadow):
                asked = asked_of(limit, asking.estimated_input_tokens)
                return CountTerms(_counters(reason, days), most, added, asked, shadow)


def window_terms(windows: Sequence[Window], name: str, key_id: str = "") -> tuple[WindowTerms, ...]:
    """Return an endpoint's windows for a key, or, without one, for whoever owns them.

    `name` is what the request is called in their logs.
    """
    return tuple(
        WindowTerms(
            window_log(window.group, window.label, key_id),
            window.limit,
            window.length_us,
            name,
            window.shadow,
        )
        for window in windows
    )


def charge(used: Used, caps: DebtCaps, now_us: int) -> tuple[Charge, tuple[LimitReason, ...]]:
    """Return what an attempt costs, and which further limits it is charged to or reads."""
    policy = used.policy
    tokens = counted(used.usage, policy.tpm_weights)
    end = End(tokens, used.usage.total, used.shadowed)
    days = window(policy, now_us)
    further = {
        limit.reason: each
        for limit in further_limits(policy, used.subject)
        if (each := _charge(limit, used, end, (caps, days))) is not None
    }
    own = tokens_for(LimitReason.TOKENS, end)
    debit = rough_debit_nano_usd(used.usage, used.price.usd_per_million)
    made = Charge(cost_us(policy, own), debit, caps, tuple(further.values()), days)
    return made, tuple(further)


def _charge(
    limit: Limit, used: Used, end: End, bounds: tuple[DebtCaps, DayWindow]
) -> FurtherCharge | None:
    """Return what one limit is charged; None: an attempt's end doesn't concern it."""
    caps, days = bounds
    match limit:
        case DebtLimit(reason, per_minute, 0):
            cost = cost_at(per_minute, tokens_for(reason, end))
            return DebtCharge(_tat(reason, used.subject), cost, caps.token_us)
        case CountLimit(reason):
            return CountCharge(_counters(reason, days), added_to(reason, end))
        case LeaseLimit():
            return None if used.lease is None else LeaseEnd(LEASES, used.lease)
    return None


def window(policy: Policy, now_us: int) -> DayWindow:
    """Return the two days to choose from, where the policy counts by the day."""
    if policy.daily_requests is None and policy.daily_tokens is None:
        return ANY_DAY
    days = days_around(now_us, policy.time_zone)
    return DayWindow(days.start_us, days.boundary_us, days.end_us)


def _tat(reason: LimitReason, subject: Subject) -> Place:
    match reason:
        case LimitReason.INPUT_TOKENS:
            return INPUT_TAT
        case LimitReason.OUTPUT_TOKENS:
            return OUTPUT_TAT
        case LimitReason.KEY_REQUESTS:
            return key_tat(subject.key_id or "", "request")
        case LimitReason.KEY_TOKENS:
            return key_tat(subject.key_id or "", "token")
        case LimitReason.MODEL_REQUESTS:
            return model_tat(subject.model or "", "request")
        case LimitReason.MODEL_TOKENS:
            return model_tat(subject.model or "", "token")
    raise ValueError(reason)


def _counters(reason: LimitReason, days: DayWindow) -> tuple[Place, Place]:
    what = "requests" if reason is LimitReason.DAY_REQUESTS else "tokens"
    return (
        day_counter(days.start_us, days.boundary_us, what),
        day_counter(days.boundary_us, days.end_us, what),
    )
