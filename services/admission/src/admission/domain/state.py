"""What the rate-limit headers tell, from the limits' values."""

from collections.abc import Mapping

import msgspec

from admission.domain.gcra import debt_us, limit_state
from admission.domain.policy import remaining_at
from contracts.admission import LimitReason, LimitState, Policy, RateState


def whole_state(
    policy: Policy, now_us: int, values: Mapping[LimitReason, int | None]
) -> LimitState:
    """Return the state of the limits that headers tell.

    `values` are TATs (unix µs of the Redis clock; None: no debt) and a day's counts (None: not
    known). What isn't among them isn't told.
    """
    request_tat_us = values.get(LimitReason.REQUESTS)
    state = limit_state(policy, now_us, request_tat_us, values.get(LimitReason.TOKENS))
    further = {
        "input_tokens": _rate(policy.input_tpm, LimitReason.INPUT_TOKENS, now_us, values),
        "output_tokens": _rate(policy.output_tpm, LimitReason.OUTPUT_TOKENS, now_us, values),
        "remaining_day_requests": _left(policy.daily_requests, LimitReason.DAY_REQUESTS, values),
        "remaining_day_tokens": _left(policy.daily_tokens, LimitReason.DAY_TOKENS, values),
    }
    told = {name: value for name, value in further.items() if value is not None}
    return msgspec.structs.replace(state, **told) if told else state


def _rate(
    per_minute: int | None,
    reason: LimitReason,
    now_us: int,
    values: Mapping[LimitReason, int | None],
) -> RateState | None:
    if per_minute is None or reason not in values:
        return None
    debt = debt_us(now_us, values[reason])
    return RateState(limit=per_minute, remaining=remaining_at(per_minute, debt), reset_us=debt)


def _left(
    most: int | None, reason: LimitReason, values: Mapping[LimitReason, int | None]
) -> int | None:
    used = values.get(reason)
    return None if most is None or used is None else max(0, most - used)
