"""Preflight: may this team call now? One script call when all is cached, a few when it isn't."""

import asyncio

from prometheus_client import Counter

from admission.clients.tier_cache import TierCache
from admission.domain import gcra
from admission.errors import StoreUnavailableError
from admission.handlers.failures import FAILURES, reply_error
from admission.handlers.reload import Reloader
from admission.store.limits import Limits
from admission.store.memory import Memory
from contracts.admission import Decision, Policy, PreflightReply, PreflightRequest
from contracts.errors import ErrorCode
from contracts.usage import Price
from kit import log
from kit.bus.serving import ReplyError
from kit.clock import Clock
from kit.crashpoint import crash_at
from redis_scripts import PreflightReply as Answer
from redis_scripts import Verdict

# A cold team needs three: its tier and balance are filled, the tier's policy becomes known, the
# decision falls. More only while its tier changes, or its keys vanish, in these milliseconds.
_MAX_ROUNDS = 5
_US_PER_S = 1_000_000

_logger = log.get(__name__)
_DECISIONS = Counter(
    "quotagate_admission_decisions_total",
    "Preflight decisions, by the limit that refused where one did.",
    ["decision", "reason"],
)


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

    async def handle(self, request: PreflightRequest) -> PreflightReply:
        """Return the decision, with prices pinned at our wall clock.

        Raises:
            ReplyError: nothing was decided, within the request's deadline.

        """
        now_us = self._clock.now_us()
        prices = self._memory.pin(request.deployments, now_us)
        if not any(prices):
            return _counted(PreflightReply(decision=Decision.MODEL_NOT_PRICED, prices=prices))
        crash_at("admission.asked")
        try:
            async with asyncio.timeout((request.deadline_us - now_us) / _US_PER_S):
                policy, answer = await self._judge(request)
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
        return _counted(_reply(policy, answer, prices))

    async def _judge(self, request: PreflightRequest) -> tuple[Policy, Answer]:
        """Run the script until the team's tier and balance are known to it and to us."""
        policy = self._memory.last_seen(request.team_id)
        for _ in range(_MAX_ROUNDS):
            answer = await self._limits.preflight(request.team_id, policy)
            if answer.verdict is Verdict.TIER_DIFFERS and answer.tier_id is not None:
                policy = await self._policy_of(request.team_id, answer.tier_id)
            elif answer.verdict in {Verdict.TIER_MISSING, Verdict.BALANCE_MISSING}:
                await self._fill(request, answer)
            elif policy is not None:
                return policy, answer
            if self._clock.now_us() > request.deadline_us:
                # The caller has given up; another round could move a limit for nobody.
                raise ReplyError(ErrorCode.DEADLINE_EXCEEDED)
        raise StoreUnavailableError("the team's keys don't hold still")

    async def _policy_of(self, team_id: str, tier_id: str) -> Policy:
        policy = self._memory.policy(tier_id)
        if policy is None:
            # A tier so new that its event hasn't arrived.
            await self._policies.fresh()
            policy = self._memory.policy(tier_id)
        if policy is None:
            raise StoreUnavailableError(f"no policy is known of tier {tier_id}")
        self._memory.saw(team_id, tier_id)
        return policy

    async def _fill(self, request: PreflightRequest, answer: Answer) -> None:
        """Have tier-cache fill what the answer says is missing, both at once if both are."""
        timeout_s = max(0, request.deadline_us - self._clock.now_us()) / _US_PER_S
        fills = []
        if answer.tier_id is None:
            fills.append(self._tier_cache.fill_tier(request.team_id, timeout_s))
        if answer.balance_nano_usd is None:
            fills.append(self._tier_cache.fill_balance(request.team_id, timeout_s))
        await asyncio.gather(*fills)


def _reply(policy: Policy, answer: Answer, prices: tuple[Price | None, ...]) -> PreflightReply:
    """Return the decision that a script's final answer means under the policy it judged by."""
    if answer.verdict is Verdict.BALANCE_NEGATIVE:
        return PreflightReply(decision=Decision.BALANCE_NEGATIVE, policy=policy, prices=prices)
    tats = (answer.now_us, answer.request_tat_us, answer.token_tat_us)
    limits = gcra.limit_state(policy, *tats)
    if answer.verdict is Verdict.ADMITTED:
        return PreflightReply(
            decision=Decision.ALLOWED, limits=limits, policy=policy, prices=prices
        )
    match gcra.preflight(policy, *tats):
        case gcra.Limited(limited_by, retry_after_us):
            return PreflightReply(
                decision=Decision.RATE_LIMITED,
                reason=limited_by.value,
                retry_after_us=retry_after_us,
                limits=limits,
                policy=policy,
                prices=prices,
            )
        case gcra.Admitted():
            raise RuntimeError("the script refused what the model of it admits")


def _counted(reply: PreflightReply) -> PreflightReply:
    _DECISIONS.labels(reply.decision.value, reply.reason or "").inc()
    return reply
