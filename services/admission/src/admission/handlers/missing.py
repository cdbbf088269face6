"""Which counters a script's answer found missing, as tier-cache is asked to fill them."""

import msgspec

from admission.domain.limits import CountLimit, SpendCap, further_limits
from admission.store.terms import Asking, payer_of, periods_of
from contracts.admission import Policy
from contracts.cache import SpendFillRequest
from kit.calendar import days_around
from redis_scripts import PreflightReply


class MissingCounters(msgspec.Struct, frozen=True):
    """A day that isn't counted, its start and its end in unix microseconds; spend that isn't."""

    day: tuple[int, int] | None
    spend: tuple[SpendFillRequest, ...]


def missing_counters(policy: Policy, asking: Asking, answer: PreflightReply) -> MissingCounters:
    """Return what isn't counted of the periods that the Redis clock was in."""
    now_us = answer.now_us
    missing = [
        limit
        for limit, reading in zip(
            further_limits(policy, asking.subject), answer.further, strict=True
        )
        if reading.value is None
    ]
    day = days_around(now_us, policy.time_zone).period_of(now_us)
    return MissingCounters(
        day if any(isinstance(limit, CountLimit) for limit in missing) else None,
        tuple(
            _spend_fill(limit, policy, asking, now_us)
            for limit in missing
            if isinstance(limit, SpendCap)
        ),
    )


def _spend_fill(limit: SpendCap, policy: Policy, asking: Asking, now_us: int) -> SpendFillRequest:
    start_us, end_us = periods_of(limit, policy.time_zone, now_us).period_of(now_us)
    return SpendFillRequest(
        team_id=asking.team_id,
        key_id=payer_of(limit, asking.subject),
        start_us=start_us,
        end_us=end_us,
    )
