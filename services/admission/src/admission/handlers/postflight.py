"""Postflight: charge the token limit and the balance with what an attempt really used."""

from prometheus_client import Counter

from admission.domain.limits import Subject
from admission.domain.state import whole_state
from admission.handlers.failures import FAILURES, reply_error
from admission.store.limits import Limits
from admission.store.terms import Used
from contracts.admission import LimitReason, PostflightReply, PostflightRequest
from kit import log
from kit.crashpoint import crash_at

_logger = log.get(__name__)
_WITHOUT_BALANCE = Counter(
    "quotagate_admission_postflights_without_balance_total",
    "Rough debits that met no balance in Redis; settlement charges them all the same.",
)


class Postflight:
    """Answers postflight requests: one script call each, sent once and never again."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    async def handle(self, request: PostflightRequest) -> PostflightReply:
        """Charge under the policy and the price that the inference was admitted with.

        Raises:
            ReplyError: Redis failed; whether the charge was made may be unknown.

        """
        crash_at("admission.charging")
        used = Used(
            Subject(request.key_id, request.model),
            request.policy,
            request.usage,
            request.price,
            request.shadowed,
            request.lease,
        )
        try:
            answer, further = await self._limits.postflight(request.team_id, used)
        except FAILURES as error:
            _logger.warning(
                "postflight failed",
                team_id=request.team_id,
                inference_id=request.inference_id,
                attempt_no=request.attempt_no,
                error=type(error).__name__,
                detail=str(error),
            )
            raise reply_error(error) from error
        crash_at("admission.charged")
        balance_known = answer.balance_nano_usd is not None
        if not balance_known:
            _WITHOUT_BALANCE.inc()
        own = {
            LimitReason.REQUESTS: answer.request_tat_us,
            LimitReason.TOKENS: answer.token_tat_us,
        }
        return PostflightReply(
            limits=whole_state(request.policy, answer.now_us, own | further),
            balance_known=balance_known,
        )
