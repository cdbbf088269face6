"""Limits: tell what Redis holds of a team, and what every limit would say. Moves nothing."""

from collections.abc import Sequence

import msgspec

from admission.domain import decision, windows
from admission.domain.limits import SPEND_REASONS, Subject, limits_of
from admission.domain.own_limits import as_met_by
from admission.domain.state import whole_state
from admission.handlers.answers import moment, values_of
from admission.handlers.failures import FAILURES, reply_error
from admission.store.limits import Limits
from admission.store.memory import Memory
from admission.store.terms import Asking, window_terms
from contracts.admission import (
    LimitExplanation,
    LimitReason,
    LimitsReply,
    LimitsRequest,
    Policy,
)
from redis_scripts import TeamState
from redis_scripts.keys import team_owner

# No call has this name, so none of those in flight is left out of the count.
_NO_LEASE = ""
_NO_NAME = ""


class TellLimits:
    """Answers limits requests."""

    def __init__(self, limits: Limits, memory: Memory) -> None:
        self._limits = limits
        self._memory = memory

    async def handle(self, request: LimitsRequest) -> LimitsReply:
        """Return a team's live state, and each limit as the next request would meet it.

        Raises:
            ReplyError: Redis failed.

        """
        asking = Asking(request.team_id, Subject(request.key_id, request.model), _NO_LEASE)
        try:
            state = await self._limits.state(request.team_id)
            tier_id = state.tier_id or request.tier_id
            policy = None if tier_id is None else self._memory.policy(tier_id)
            if policy is not None:
                policy = as_met_by(policy, request.key_limits)
                state = await self._limits.further_state(asking, policy)
            told = _told(asking, policy, state)
            if request.key_id is not None and request.windows:
                told = await self._with_windows(told, request)
        except FAILURES as error:
            raise reply_error(error) from error
        problem = None if tier_id is None else self._memory.problem(tier_id)
        return msgspec.structs.replace(
            told, problem=None if problem is None else f"tier {tier_id}: {problem}"
        )

    async def _with_windows(self, told: LimitsReply, request: LimitsRequest) -> LimitsReply:
        """Return the reply with an endpoint's windows, of which one may decide."""
        terms = window_terms(request.windows, _NO_NAME, request.key_id or "")
        state = await self._limits.windows_state(team_owner(request.team_id), terms)
        explained = (
            *told.explained,
            *(
                windows.explain(window, use, state.now_us)
                for window, use in zip(request.windows, state.uses, strict=True)
            ),
        )
        return msgspec.structs.replace(told, explained=explained, decides=_decides(explained))


def _decides(explained: Sequence[LimitExplanation]) -> LimitReason | None:
    """Return which limit would be told: as preflight tells it, a limit of the tier before a window.

    Of equal waits that is the first, and spend comes before all others.
    """
    refusing = [one for one in explained if one.retry_after_us and not one.shadow]
    first = max(
        refusing, key=lambda one: (one.reason in SPEND_REASONS, one.retry_after_us), default=None
    )
    return None if first is None else first.reason


def _told(asking: Asking, policy: Policy | None, state: TeamState) -> LimitsReply:
    cached = LimitsReply(
        now_us=state.now_us,
        request_tat_us=state.request_tat_us,
        token_tat_us=state.token_tat_us,
        tier_id=state.tier_id,
        balance_nano_usd=state.balance_nano_usd,
        balance_version=state.balance_version,
    )
    if policy is None:
        return cached
    limits, when = limits_of(policy, asking.subject), moment(policy, state.now_us, 0)
    judged = [
        decision.judge(limit, value, when)
        for limit, value in zip(limits, values_of(state), strict=True)
    ]
    decides = decision.decider(judged)
    return msgspec.structs.replace(
        cached,
        limits=whole_state(policy, state.now_us, {one.limit.reason: one.value for one in judged}),
        explained=tuple(decision.explain(one, when) for one in judged),
        decides=None if decides is None else decides.limit.reason,
    )
