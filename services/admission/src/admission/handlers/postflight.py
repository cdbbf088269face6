"""Postflight: charge the token limit and the balance with what an attempt really used."""

from prometheus_client import Counter

from admission.domain import gcra
from admission.handlers.failures import FAILURES, reply_error
from admission.store.limits import Limits
from contracts.admission import PostflightReply, PostflightRequest
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
        try:
            answer = await self._limits.postflight(
                request.team_id, request.policy, request.usage, request.price
            )
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
        return PostflightReply(
            limits=gcra.limit_state(
                request.policy, answer.now_us, answer.request_tat_us, answer.token_tat_us
            ),
            balance_known=balance_known,
        )
