"""Windows: may one more request come to an endpoint that has no preflight? One script call."""

import asyncio

from prometheus_client import Counter

from admission.domain import windows
from admission.errors import StoreUnavailableError
from admission.handlers.failures import FAILURES, reply_error
from admission.store.limits import Limits
from admission.store.terms import window_terms
from contracts.errors import ErrorCode
from contracts.limits import LimitScope
from contracts.windows import WindowsReply, WindowsRequest
from kit.bus.serving import ReplyError
from kit.clock import Clock
from kit.ids import new_id
from redis_scripts.keys import Owner, address_owner, team_owner

_US_PER_S = 1_000_000

_DECISIONS = Counter(
    "quotagate_admission_window_decisions_total",
    "Requests without a preflight, judged by their endpoint's windows.",
    ["decision"],
)


class JudgeWindows:
    """Answers windows requests. What can't be judged is an error: the edge knows what then."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock

    async def handle(self, request: WindowsRequest) -> WindowsReply:
        """Return the decision.

        Raises:
            ReplyError: nothing was decided, within the request's deadline.

        """
        try:
            owner, scope = _whose(request)
            terms = window_terms(request.windows, new_id(), request.key_id or "")
            left_us = max(0, request.deadline_us - self._clock.now_us())
            async with asyncio.timeout(left_us / _US_PER_S):
                answer = await self._limits.judge_windows(owner, terms)
        except TimeoutError as error:
            raise reply_error(StoreUnavailableError()) from error
        except FAILURES as error:
            raise reply_error(error) from error
        _DECISIONS.labels("allowed" if answer.admitted else "limited").inc()
        told = windows.told(request.windows, answer.uses, scope, answer.now_us)
        if told is None:
            return WindowsReply(uses=answer.uses)
        refusal, wait_us = told
        return WindowsReply(uses=answer.uses, refusal=refusal, retry_after_us=wait_us)


def _whose(request: WindowsRequest) -> tuple[Owner, LimitScope]:
    if request.address is not None:
        return address_owner(request.address), LimitScope.ADDRESS
    if request.team_id is None or request.key_id is None:
        raise ReplyError(ErrorCode.INVALID_MESSAGE)
    return team_owner(request.team_id), LimitScope.KEY
