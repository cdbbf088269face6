"""Teams' limits and balances in Redis, each call one script. The Redis clock alone counts."""

from prometheus_client import Counter

from admission.domain.money import rough_debit_nano_usd
from admission.domain.policy import cost_us, interval_us, request_burst_us, token_burst_us
from admission.errors import StoreUnavailableError
from admission.store.memory import Memory
from contracts.admission import Policy
from contracts.usage import Price, Usage
from kit import log
from redis_scripts import (
    Charge,
    DebtCaps,
    NotDoneError,
    OutcomeUnknownError,
    PostflightReply,
    PreflightReply,
    PreflightTerms,
    RedisScripts,
    TeamState,
    Verdict,
)

# "" matches no stored tier, so the script's answer names the one that is stored.
_NO_TIER = ""
_JUDGED_BY_DEBT = frozenset({Verdict.LIMITED, Verdict.ADMITTED})

_logger = log.get(__name__)
_CAPPED = Counter(
    "quotagate_admission_capped_tats_total",
    "TATs further ahead than usage explains: was the clock of Redis stepped?",
    ["limit"],
)


class Limits:
    """Judges and charges teams. Every method raises StoreUnavailableError when Redis fails."""

    def __init__(self, scripts: RedisScripts, memory: Memory) -> None:
        self._scripts = scripts
        self._memory = memory

    async def preflight(self, team_id: str, policy: Policy | None) -> PreflightReply:
        """Judge one request under an assumed policy; None assumes nothing, and is told the tier.

        Only `ADMITTED` moved anything.
        """
        terms = _terms(policy, self._caps(policy))
        try:
            reply = await self._scripts.preflight(team_id, terms)
            if reply.verdict in _JUDGED_BY_DEBT and (reply.request_capped or reply.token_capped):
                # A refusal writes nothing, so the TAT would stay ahead for as long as the step.
                await self._scripts.cap_debts(team_id, terms.caps)
                _count_capped(team_id, requests=reply.request_capped, tokens=reply.token_capped)
        except (NotDoneError, OutcomeUnknownError) as error:
            raise StoreUnavailableError(str(error)) from error
        return reply

    async def postflight(
        self, team_id: str, policy: Policy, usage: Usage, price: Price
    ) -> PostflightReply:
        """Charge one attempt: its tokens to the token TAT, its rough debit to the balance.

        To be called once per attempt: a failure may have charged.
        """
        charge = Charge(
            cost_us(policy, usage.total),
            rough_debit_nano_usd(usage, price.usd_per_million),
            self._caps(policy),
        )
        try:
            reply = await self._scripts.postflight(team_id, charge)
        except (NotDoneError, OutcomeUnknownError) as error:
            raise StoreUnavailableError(str(error)) from error
        # A request TAT that is too far ahead is judged, and cut, by the next preflight.
        _count_capped(team_id, requests=False, tokens=reply.token_capped)
        return reply

    async def state(self, team_id: str) -> TeamState:
        """Return all that Redis holds of a team; moves nothing."""
        try:
            return await self._scripts.limits_state(team_id)
        except (NotDoneError, OutcomeUnknownError) as error:
            raise StoreUnavailableError(str(error)) from error

    def _caps(self, policy: Policy | None) -> DebtCaps:
        longest = self._memory.debts_of(policy)
        return DebtCaps(request_us=longest.request_us, token_us=longest.token_us)


def _terms(policy: Policy | None, caps: DebtCaps) -> PreflightTerms:
    if policy is None:
        return PreflightTerms(_NO_TIER, 0, 0, 0, caps)
    return PreflightTerms(
        policy.tier_id,
        interval_us(policy),
        request_burst_us(policy),
        token_burst_us(policy),
        caps,
    )


def _count_capped(team_id: str, *, requests: bool, tokens: bool) -> None:
    for limit, capped in (("requests", requests), ("tokens", tokens)):
        if capped:
            _CAPPED.labels(limit).inc()
            _logger.error("debt longer than usage explains", team_id=team_id, limit=limit)
