"""What preflight's final answer means under the policy it was judged by."""

from prometheus_client import Counter

from admission.domain import decision, windows
from admission.domain.decision import Admitted, Limited, Moment
from admission.domain.limits import Limit, SpendCap, counts, limits_of, never_admissible
from admission.domain.state import whole_state
from admission.store.terms import Asking
from contracts.admission import (
    Decision,
    LimitReason,
    LimitScope,
    Policy,
    PreflightReply,
    Refusal,
)
from kit.calendar import days_around, months_around
from redis_scripts import PreflightReply as Answer
from redis_scripts import TeamState, Verdict

_DECISIONS = Counter(
    "quotagate_admission_decisions_total",
    "Preflight decisions, by the limit that refused where one did.",
    ["decision", "reason"],
)
_SHADOWED = Counter(
    "quotagate_admission_shadow_refusals_total",
    "Requests that a limit in shadow mode would have refused, by limit.",
    ["reason"],
)

_NO_DAY_US = 0


def values_of(answer: Answer | TeamState) -> tuple[int | None, ...]:
    """Return the limits' values in the order of `limits_of`."""
    further = (one if isinstance(one, int | None) else one.value for one in answer.further)
    return (answer.request_tat_us, answer.token_tat_us, *further)


def moment(policy: Policy, now_us: int, estimated_input_tokens: int) -> Moment:
    """Return when a request was judged, and when its day and month end, where the policy counts."""
    if not counts(policy):
        return Moment(now_us, _NO_DAY_US, estimated_input_tokens)
    day_end_us = days_around(now_us, policy.time_zone).period_of(now_us)[1]
    month_end_us = months_around(now_us, policy.time_zone).period_of(now_us)[1]
    return Moment(now_us, day_end_us, estimated_input_tokens, month_end_us)


def reply(policy: Policy, asking: Asking, answer: Answer) -> PreflightReply:
    """Return the decision that a script's final answer means, without prices and lease."""
    if answer.verdict is Verdict.BALANCE_NEGATIVE:
        return PreflightReply(decision=Decision.BALANCE_NEGATIVE, policy=policy)
    limits, values = limits_of(policy, asking.subject), values_of(answer)
    by_reason = {limit.reason: value for limit, value in zip(limits, values, strict=True)}
    state = whole_state(policy, answer.now_us, by_reason)
    if answer.verdict is Verdict.ADMITTED:
        return PreflightReply(
            decision=Decision.ALLOWED,
            limits=state,
            policy=policy,
            shadowed=(*_shadowed(limits, answer.refusing), *_by_windows(asking, answer)),
            windows=answer.windows,
        )
    when = moment(policy, answer.now_us, asking.estimated_input_tokens)
    decided = decision.decide(limits, values, when)
    is_spend = isinstance(decided, Limited) and isinstance(decided.by.limit, SpendCap)
    never = not is_spend and never_admissible(policy, asking.estimated_input_tokens)
    limited = Decision.SPEND_LIMITED if is_spend else Decision.RATE_LIMITED
    refusal, wait_us = _told(decided, when, asking, answer)
    return PreflightReply(
        decision=Decision.NEVER_ADMISSIBLE if never else limited,
        reason=(LimitReason.DAY_TOKENS if never else refusal.reason).value,
        retry_after_us=0 if never else wait_us,
        limits=state,
        policy=policy,
        refusal=None if never else refusal,
        shadowed=(*decided.shadowed, *_by_windows(asking, answer)),
        windows=answer.windows,
    )


def _told(
    decided: Admitted | Limited, when: Moment, asking: Asking, answer: Answer
) -> tuple[Refusal, int]:
    """Return the refusal with the longest wait, a limit of the tier before a window, and that wait.

    The tier's limits may admit what a window refuses. A limit of spend comes before all others.
    """
    found = [] if isinstance(decided, Admitted) else [decided.by]
    if found and isinstance(found[0].limit, SpendCap):
        return decision.refusal(found[0], when), found[0].wait_us
    refusals = [(decision.refusal(judged, when), judged.wait_us) for judged in found]
    by_window = windows.told(asking.windows, answer.windows, LimitScope.KEY, answer.now_us)
    if by_window is not None:
        refusals.append(by_window)
    if not refusals:
        raise RuntimeError("the script refused what the model of it admits")
    return max(refusals, key=lambda refusal: refusal[1])


def _by_windows(asking: Asking, answer: Answer) -> tuple[LimitReason, ...]:
    """Return the reason of windows, if one in shadow mode would have refused."""
    return (LimitReason.ENDPOINT,) if windows.shadowed(asking.windows, answer.windows) else ()


def _shadowed(limits: tuple[Limit, ...], refusing: tuple[int, ...]) -> tuple[LimitReason, ...]:
    # All of them are in shadow mode, or the request would not have been admitted.
    return tuple(limits[position].reason for position in refusing)


def counted(told: PreflightReply) -> PreflightReply:
    """Count a decision."""
    _DECISIONS.labels(told.decision.value, told.reason or "").inc()
    for reason in told.shadowed:
        _SHADOWED.labels(reason.value).inc()
    return told
