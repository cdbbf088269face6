"""Limits: tell what Redis holds of a team. Moves nothing."""

from admission.domain import gcra
from admission.handlers.failures import FAILURES, reply_error
from admission.store.limits import Limits
from admission.store.memory import Memory
from contracts.admission import LimitsReply, LimitsRequest


class TellLimits:
    """Answers limits requests."""

    def __init__(self, limits: Limits, memory: Memory) -> None:
        self._limits = limits
        self._memory = memory

    async def handle(self, request: LimitsRequest) -> LimitsReply:
        """Return a team's live state.

        Raises:
            ReplyError: Redis failed.

        """
        try:
            state = await self._limits.state(request.team_id)
        except FAILURES as error:
            raise reply_error(error) from error
        policy = None if state.tier_id is None else self._memory.policy(state.tier_id)
        tats = (state.now_us, state.request_tat_us, state.token_tat_us)
        return LimitsReply(
            now_us=state.now_us,
            request_tat_us=state.request_tat_us,
            token_tat_us=state.token_tat_us,
            tier_id=state.tier_id,
            balance_nano_usd=state.balance_nano_usd,
            balance_version=state.balance_version,
            limits=None if policy is None else gcra.limit_state(policy, *tats),
        )
