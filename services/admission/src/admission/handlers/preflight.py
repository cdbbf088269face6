"""Preflight: may this team call now? One script call when all is cached, a few when it isn't."""

import asyncio

import msgspec

from admission.clients.tier_cache import TierCache
from admission.domain.limits import Subject
from admission.domain.own_limits import as_met_by
from admission.errors import ImpossibleTierError, StoreUnavailableError
from admission.handlers.answers import counted, reply
from admission.handlers.failures import FAILURES, reply_error
from admission.handlers.further import FurtherAttempts
from admission.handlers.missing import missing_counters
from admission.handlers.reload import Reloader
from admission.store.limits import Limits
from admission.store.memory import Memory
from admission.store.terms import Asking
from contracts.admission import Decision, Lease, Policy, PreflightReply, PreflightRequest
from contracts.errors import ErrorCode
from kit import log
from kit.bus.serving import ReplyError
from kit.clock import Clock
from kit.crashpoint import crash_at
from redis_scripts import PreflightReply as Answer
from redis_scripts import Verdict

# A cold team needs four: its tier and balance are filled, the tier's policy becomes known, its day
# is counted, the decision falls. More only while its tier changes, or its keys vanish, in these
# milliseconds.
_MAX_ROUNDS = 6
_US_PER_S = 1_000_000
_MISSING = frozenset({Verdict.TIER_MISSING, Verdict.BALANCE_MISSING, Verdict.COUNT_MISSING})

_logger = log.get(__name__)


class Preflight:
    """Answers preflight requests. What can't be decided is an error, never an allowance."""

    def __init__(
        self,
        limits: Limits,
        memory: Memory,
        tier_cache: TierCache,
        policies: Reloader,
        clock: Clock,
    ) -> None:
        self._limits = limits
        self._memory = memory
        self._tier_cache = tier_cache
        self._policies = policies
        self._clock = clock
        self._further = FurtherAttempts(limits, tier_cache, clock)

    async def handle(self, request: PreflightRequest) -> PreflightReply:
        """Return the decision, with prices pinned at our wall clock.

        Raises:
            ReplyError: nothing was decided, within the request's deadline.

        """
        if request.further:
            return await self._further.handle(request)
        now_us = self._clock.now_us()
        prices = self._memory.pin(request.deployments, now_us)
        if not any(prices):
            return counted(PreflightReply(decision=Decision.MODEL_NOT_PRICED, prices=prices))
        crash_at("admission.asked")
        asking = Asking(
            request.team_id,
            Subject(request.key_id, request.model),
            f"{request.inference_id}:{request.attempt_no}",
            request.estimated_input_tokens,
            request.key_limits,
            request.windows,
        )
        try:
            async with asyncio.timeout((request.deadline_us - now_us) / _US_PER_S):
                policy, answer = await self._judge(asking, request.deadline_us)
        except TimeoutError as error:
            # Whoever waits in the queue to Redis is taken out of it; what left is unknown.
            raise ReplyError(ErrorCode.STORE_UNAVAILABLE) from error
        except FAILURES as error:
            _logger.warning(
                "preflight failed",
                team_id=request.team_id,
                inference_id=request.inference_id,
                error=type(error).__name__,
                detail=str(error),
            )
            raise reply_error(error) from error
        crash_at("admission.decided")
        told = reply(policy, asking, answer)
        lease = None
        if told.decision is Decision.ALLOWED and policy.max_concurrency is not None:
            lease = Lease(name=asking.lease, life_us=self._limits.lease_life_us)
        return counted(msgspec.structs.replace(told, prices=prices, lease=lease))

    async def _judge(self, asking: Asking, deadline_us: int) -> tuple[Policy, Answer]:
        """Run the script until the team's tier, balance and day are known to it and to us."""
        policy = self._memory.last_seen(asking.team_id)
        if policy is not None:
            policy = as_met_by(policy, asking.key_limits)
        for _ in range(_MAX_ROUNDS):
            answer = await self._limits.preflight(asking, policy)
            if answer.verdict is Verdict.TIER_DIFFERS and answer.tier_id is not None:
                tier = await self._policy_of(asking.team_id, answer.tier_id)
                policy = as_met_by(tier, asking.key_limits)
            elif answer.verdict in _MISSING:
                await self._fill(asking, policy, answer, deadline_us)
            elif policy is not None:
                return policy, answer
            if self._clock.now_us() > deadline_us:
                # The caller has given up; another round could move a limit for nobody.
                raise ReplyError(ErrorCode.DEADLINE_EXCEEDED)
        raise StoreUnavailableError("the team's keys don't hold still")

    async def _policy_of(self, team_id: str, tier_id: str) -> Policy:
        policy, problem = self._memory.policy(tier_id), self._memory.problem(tier_id)
        if policy is None and problem is not None:
            raise ImpossibleTierError(f"tier {tier_id}: {problem}")
        if policy is None:
            # A tier so new that its event hasn't arrived.
            await self._policies.fresh()
            policy = self._memory.policy(tier_id)
        if policy is None:
            raise StoreUnavailableError(f"no policy is known of tier {tier_id}")
        self._memory.saw(team_id, tier_id)
        return policy

    async def _fill(
        self, asking: Asking, policy: Policy | None, answer: Answer, deadline_us: int
    ) -> None:
        """Have tier-cache fill what the answer says is missing, all at once."""
        timeout_s = max(0, deadline_us - self._clock.now_us()) / _US_PER_S
        team_id = asking.team_id
        fills = []
        if answer.tier_id is None:
            fills.append(self._tier_cache.fill_tier(team_id, timeout_s))
        if answer.balance_nano_usd is None:
            fills.append(self._tier_cache.fill_balance(team_id, timeout_s))
        if answer.verdict is Verdict.COUNT_MISSING and policy is not None:
            counters = missing_counters(policy, asking, answer)
            if counters.day is not None:
                fills.append(self._tier_cache.fill_day(team_id, counters.day, timeout_s))
            fills += [self._tier_cache.fill_spend(spend, timeout_s) for spend in counters.spend]
        await asyncio.gather(*fills)
