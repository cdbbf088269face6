"""A policy's limits as the Redis scripts are told them: where each lives, and its numbers."""

from collections.abc import Sequence

import msgspec

from admission.domain.charging import End, added_to, tokens_for
from admission.domain.limits import (
    CountLimit,
    DebtLimit,
    LeaseLimit,
    Limit,
    SpendCap,
    Subject,
    asked_of,
    counts,
    further_limits,
    scope_of,
)
from admission.domain.money import rough_debit_nano_usd
from admission.domain.policy import cost_at, cost_us, interval_us, request_burst_us, token_burst_us
from admission.domain.tokens import counted
from contracts.admission import KeyLimits, LimitReason, LimitScope, Policy
from contracts.spend import SpendPeriod
from contracts.usage import Price, Usage
from contracts.windows import Window
from kit.calendar import Periods, days_around, months_around
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
    SpendCharge,
    SpendTerms,
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
    spend_counter,
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
            tuple(
                _spend_terms(limit, policy, asking.subject, now_us)
                if isinstance(limit, SpendCap)
                else self._term(limit, asking, caps, days)
                for limit in limits
            ),
            days,
            window_terms(asking.windows, asking.lease, asking.subject.key_id or ""),
        )

    def _term(
        self,
        limit: DebtLimit | LeaseLimit | CountLimit,
        asking: Asking,
        caps: DebtCaps,
        days: DayWindow,
    ) -> Further:
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
        if (each := _charge(limit, used, end, (caps, days, now_us))) is not None
    }
    own = tokens_for(LimitReason.TOKENS, end)
    debit = rough_debit_nano_usd(used.usage, used.price.usd_per_million)
    made = Charge(cost_us(policy, own), debit, caps, tuple(further.values()), days)
    return made, tuple(further)


def _charge(
    limit: Limit, used: Used, end: End, bounds: tuple[DebtCaps, DayWindow, int]
) -> FurtherCharge | None:
    """Return what one limit is charged; None: an attempt's end doesn't concern it."""
    caps, days, now_us = bounds
    match limit:
        case DebtLimit(reason, per_minute, 0):
            cost = cost_at(per_minute, tokens_for(reason, end))
            return DebtCharge(_tat(reason, used.subject), cost, caps.token_us)
        case CountLimit(reason):
            return CountCharge(_counters(reason, days), added_to(reason, end))
        case LeaseLimit():
            return None if used.lease is None else LeaseEnd(LEASES, used.lease)
        case SpendCap():
            periods = periods_of(limit, used.policy.time_zone, now_us)
            places = _spend_counters(limit, used.subject, periods)
            return SpendCharge(places, periods.boundary_us)
    return None


def _spend_terms(limit: SpendCap, policy: Policy, subject: Subject, now_us: int) -> SpendTerms:
    periods = periods_of(limit, policy.time_zone, now_us)
    places = _spend_counters(limit, subject, periods)
    return SpendTerms(places, periods.boundary_us, limit.most, limit.shadow)


def periods_of(limit: SpendCap, time_zone: str, now_us: int) -> Periods:
    """Return the two periods of a limit of spend that touch nearest to a moment."""
    around = days_around if limit.period is SpendPeriod.DAY else months_around
    return around(now_us, time_zone)


def payer_of(limit: SpendCap, subject: Subject) -> str | None:
    """Return whose spend is limited: a key's, or with None the whole team's."""
    return subject.key_id if scope_of(limit.reason) is LimitScope.KEY else None


def _spend_counters(limit: SpendCap, subject: Subject, periods: Periods) -> tuple[Place, Place]:
    key_id = payer_of(limit, subject)
    return (
        spend_counter(periods.start_us, periods.boundary_us, key_id),
        spend_counter(periods.boundary_us, periods.end_us, key_id),
    )


def window(policy: Policy, now_us: int) -> DayWindow:
    """Return the two days to choose from, where the policy counts by the day, or spend."""
    if not counts(policy):
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
