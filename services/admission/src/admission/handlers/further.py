"""Preflight of a further attempt of an admitted inference: whether its team may still pay.

The request limit counted the inference once, and prices and policy were pinned then; so only the
balance is judged here, and nothing moves.
"""

import asyncio

from prometheus_client import Counter

from admission.clients.tier_cache import TierCache
from admission.errors import StoreUnavailableError
from admission.handlers.failures import FAILURES, reply_error
from admission.store.limits import Limits
from contracts.admission import Decision, PreflightReply, PreflightRequest
from contracts.errors import ErrorCode
from kit import log
from kit.bus.serving import ReplyError
from kit.clock import Clock

_US_PER_S = 1_000_000

_logger = log.get(__name__)
_DECISIONS = Counter(
    "quotagate_admission_further_attempts_total",
    "Decisions on retries and fallbacks of admitted inferences.",
    ["decision"],
)


class FurtherAttempts:
    """Judges balances. One that can't be read is an error, never an allowance."""

    def __init__(self, limits: Limits, tier_cache: TierCache, clock: Clock) -> None:
        self._limits = limits
        self._tier_cache = tier_cache
        self._clock = clock

    async def handle(self, request: PreflightRequest) -> PreflightReply:
        """Return whether the balance allows one more attempt.

        Raises:
            ReplyError: nothing was decided, within the request's deadline.

        """
        try:
            async with asyncio.timeout(self._left_s(request)):
                balance_nano_usd = await self._balance(request)
        except TimeoutError as error:
            raise ReplyError(ErrorCode.STORE_UNAVAILABLE) from error
        except FAILURES as error:
            _logger.warning(
                "further attempt not judged",
                team_id=request.team_id,
                inference_id=request.inference_id,
                error=type(error).__name__,
                detail=str(error),
            )
            raise reply_error(error) from error
        decision = Decision.ALLOWED if balance_nano_usd >= 0 else Decision.BALANCE_NEGATIVE
        _DECISIONS.labels(decision.value).inc()
        return PreflightReply(decision=decision)

    async def _balance(self, request: PreflightRequest) -> int:
        """Return the cached balance; one that is missing is filled first."""
        state = await self._limits.state(request.team_id)
        if state.balance_nano_usd is None:
            await self._tier_cache.fill_balance(request.team_id, self._left_s(request))
            state = await self._limits.state(request.team_id)
        if state.balance_nano_usd is None:
            raise StoreUnavailableError("the team's balance doesn't hold still")
        return state.balance_nano_usd

    def _left_s(self, request: PreflightRequest) -> float:
        return max(0, request.deadline_us - self._clock.now_us()) / _US_PER_S
