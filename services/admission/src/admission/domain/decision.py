"""The whole decision: what every limit of a request says, and what the answer is.

The model of `lua/preflight.lua` and `lua/postflight.lua`, for reading, for testing them, and for
explaining an answer of theirs. A value is a TAT (None: no debt), how many others are in flight, a
day's count, or what was spent in a period (None: missing).
"""

from collections.abc import Sequence

import msgspec

from admission.domain.gcra import advanced, debt_us
from admission.domain.limits import (
    LEASE_WAIT_US,
    CountLimit,
    DebtLimit,
    LeaseLimit,
    Limit,
    SpendCap,
    asked_of,
    scope_of,
)
from admission.domain.policy import remaining_at, units_at
from contracts.admission import LimitExplanation, LimitReason, Refusal
from contracts.spend import SpendPeriod


class Moment(msgspec.Struct, frozen=True):
    """When a request is judged, and what of it counts before it was sent.

    Times are unix microseconds of the Redis clock.
    """

    now_us: int
    day_end_us: int
    estimated_input_tokens: int = 0
    month_end_us: int = 0

    def end_us(self, limit: Limit) -> int | None:
        """Return when the period of a limit ends that counts; None: it doesn't count."""
        match limit:
            case CountLimit() | SpendCap(period=SpendPeriod.DAY):
                return self.day_end_us
            case SpendCap():
                return self.month_end_us
        return None


class Judged(msgspec.Struct, frozen=True):
    """A limit, its value, and how long it refuses; 0: it doesn't."""

    limit: Limit
    value: int | None
    wait_us: int

    @property
    def known(self) -> bool:
        """Return whether it could be judged: a missing count can't."""
        return self.value is not None or not isinstance(self.limit, CountLimit | SpendCap)


class Admitted(msgspec.Struct, frozen=True):
    """The request may go; `values` are those it leaves, `shadowed` who would have refused it."""

    values: tuple[int | None, ...]
    shadowed: tuple[LimitReason, ...]


class Limited(msgspec.Struct, frozen=True):
    """The request may not go and nothing moved.

    `by` is the limit that refuses for the longest time; of equal ones the first. Limits of spend
    come before all others: to wait doesn't help as long as there is no money.
    """

    by: Judged
    shadowed: tuple[LimitReason, ...]


def judge(limit: Limit, value: int | None, moment: Moment) -> Judged:
    """Return what one limit says; a missing count says nothing."""
    wait_us = 0
    match limit:
        case DebtLimit(burst_us=burst_us):
            wait_us = max(0, debt_us(moment.now_us, value) - burst_us)
        case LeaseLimit(most=most):
            if (value or 0) >= most:
                wait_us = LEASE_WAIT_US
        case CountLimit(most=most):
            asked = asked_of(limit, moment.estimated_input_tokens)
            if value is not None and value + asked > most:
                wait_us = moment.day_end_us - moment.now_us
        case SpendCap(most=most):
            if value is not None and value >= most:
                wait_us = (moment.end_us(limit) or moment.now_us) - moment.now_us
    return Judged(limit, value, wait_us)


def decide(
    limits: Sequence[Limit], values: Sequence[int | None], moment: Moment
) -> Admitted | Limited:
    """Decide one request whose counts are all known."""
    judged = [judge(limit, value, moment) for limit, value in zip(limits, values, strict=True)]
    shadowed = tuple(one.limit.reason for one in judged if one.wait_us and one.limit.shadow)
    refusing = decider(judged)
    if refusing is not None:
        return Limited(refusing, shadowed)
    return Admitted(tuple(_admitted(one, moment.now_us) for one in judged), shadowed)


def decider(judged: Sequence[Judged]) -> Judged | None:
    """Return the limit that is told of those that refuse; None: none does."""
    refusing = [one for one in judged if one.wait_us and not one.limit.shadow]
    return max(
        refusing,
        key=lambda one: (isinstance(one.limit, SpendCap), one.wait_us),
        default=None,
    )


def _admitted(judged: Judged, now_us: int) -> int | None:
    """Return the value that an admission leaves."""
    value = judged.value
    match judged.limit:
        case DebtLimit(advance_us=advance_us):
            # What refuses in shadow mode stays, as it would have for a real refusal.
            moves = advance_us and not judged.wait_us
            return advanced(now_us, value, advance_us) if moves else value
        case LeaseLimit():
            return (value or 0) + 1
        case CountLimit(added=added):
            return None if value is None else value + added
        case SpendCap():
            return value


def refusal(judged: Judged, moment: Moment) -> Refusal:
    """Return a refusing limit as clients are told of it."""
    limit, used = judged.limit, _used(judged, moment.now_us)
    resets_at_us = moment.end_us(limit)
    if isinstance(limit, DebtLimit):
        resets_at_us = judged.value
    return Refusal(
        reason=limit.reason,
        scope=scope_of(limit.reason),
        limit=limit_value(limit),
        used=used,
        resets_at_us=resets_at_us,
    )


def explain(judged: Judged, moment: Moment) -> LimitExplanation:
    """Return a limit as the next request would meet it."""
    limit, used = judged.limit, _used(judged, moment.now_us)
    remaining = max(0, limit_value(limit) - used) if judged.known else 0
    end_us = moment.end_us(limit)
    reset_us = None if end_us is None else end_us - moment.now_us
    if isinstance(limit, DebtLimit):
        reset_us = debt_us(moment.now_us, judged.value)
        remaining = _remaining(limit, reset_us)
    return LimitExplanation(
        reason=limit.reason,
        scope=scope_of(limit.reason),
        limit=limit_value(limit),
        known=judged.known,
        used=used,
        remaining=remaining,
        reset_us=reset_us,
        retry_after_us=judged.wait_us,
        shadow=limit.shadow,
    )


def limit_value(limit: Limit) -> int:
    """Return what the tier says: per minute, at once, or a period; of spend nano-USD."""
    return limit.per_minute if isinstance(limit, DebtLimit) else limit.most


def _used(judged: Judged, now_us: int) -> int:
    if isinstance(judged.limit, DebtLimit):
        return units_at(judged.limit.per_minute, debt_us(now_us, judged.value))
    return judged.value or 0


def _remaining(limit: DebtLimit, debt: int) -> int:
    """Return tokens that remain of a minute, or how many requests would be admitted at once."""
    if not limit.advance_us:
        return remaining_at(limit.per_minute, debt)
    room_us = limit.burst_us - debt
    return 0 if room_us < 0 else room_us // limit.advance_us + 1
