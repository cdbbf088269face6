"""Teams' limits and balances in Redis, each call one script. The Redis clock alone counts."""

from collections.abc import Iterable, Sequence

from prometheus_client import Counter

from admission.domain.limits import further_limits
from admission.errors import StoreUnavailableError
from admission.store.memory import Memory
from admission.store.terms import Asking, Terms, Used, charge
from contracts.admission import LimitReason, Policy
from kit import log
from kit.clock import Clock
from redis_scripts import (
    DebtCaps,
    DebtTerms,
    NotDoneError,
    OutcomeUnknownError,
    PostflightReply,
    PreflightReply,
    PreflightTerms,
    RedisScripts,
    TeamState,
    Verdict,
    WindowsReply,
    WindowsState,
    WindowTerms,
)
from redis_scripts.keys import Owner

# "" matches no stored tier, so the script's answer names the one that is stored.
_NO_TIER = ""
_JUDGED_BY_DEBT = frozenset({Verdict.LIMITED, Verdict.ADMITTED})
_Answer = tuple[PreflightTerms, PreflightReply]

_logger = log.get(__name__)
_CAPPED = Counter(
    "quotagate_admission_capped_tats_total",
    "TATs further ahead than usage explains: was the clock of Redis stepped?",
    ["limit"],
)


class _NamedFailures:
    """Turns the failures of scripts into ours. One for all calls: it is on everybody's way."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object
    ) -> None:
        if isinstance(error, NotDoneError | OutcomeUnknownError):
            raise StoreUnavailableError(str(error)) from error


_named_failures = _NamedFailures()


class Limits:
    """Judges and charges teams. Every method raises StoreUnavailableError when Redis fails."""

    def __init__(self, scripts: RedisScripts, memory: Memory, clock: Clock, terms: Terms) -> None:
        self._scripts = scripts
        self._memory = memory
        self._clock = clock
        self._terms = terms

    @property
    def lease_life_us(self) -> int:
        """How long a lease lives that nobody renews."""
        return self._terms.lease_life_us

    async def preflight(self, asking: Asking, policy: Policy | None) -> PreflightReply:
        """Judge one request under an assumed policy; None assumes nothing, and is told the tier.

        Only `ADMITTED` moved anything.
        """
        caps = self._caps(policy)
        if policy is None:
            terms = PreflightTerms(_NO_TIER, 0, 0, 0, caps)
        else:
            terms = self._terms.judged(policy, asking, caps, self._clock.now_us())
        with _named_failures:
            reply = await self._scripts.preflight(asking.team_id, terms)
            if reply.verdict in _JUDGED_BY_DEBT:
                await self._cap(asking, policy, (terms, reply))
        return reply

    async def judge_windows(self, owner: Owner, windows: Sequence[WindowTerms]) -> WindowsReply:
        """Judge one request by windows alone; only an admitted one moved anything."""
        with _named_failures:
            return await self._scripts.judge_windows(owner, windows)

    async def postflight(
        self, team_id: str, used: Used
    ) -> tuple[PostflightReply, dict[LimitReason, int | None]]:
        """Charge one attempt: its tokens to the limits, its rough debit to the balance.

        To be called once per attempt: a failure may have charged. Returns the further limits'
        values after it as well, of those that an attempt's end concerns.
        """
        made, reasons = charge(used, self._caps(used.policy), self._clock.now_us())
        with _named_failures:
            reply = await self._scripts.postflight(team_id, made)
        # A request TAT that is too far ahead is judged, and cut, by the next preflight.
        further = dict(zip(reasons, reply.further, strict=True))
        capped = [LimitReason.TOKENS] if reply.token_capped else []
        capped += [reason for reason, reading in further.items() if reading.capped]
        _count_capped(team_id, capped)
        return reply, {reason: reading.value for reason, reading in further.items()}

    async def state(self, team_id: str) -> TeamState:
        """Return what Redis holds of every team; moves nothing."""
        with _named_failures:
            return await self._scripts.limits_state(team_id)

    async def further_state(self, asking: Asking, policy: Policy) -> TeamState:
        """Return what Redis holds of a team, the policy's further limits too; moves nothing."""
        terms = self._terms.judged(policy, asking, self._caps(policy), self._clock.now_us())
        with _named_failures:
            return await self._scripts.limits_state(asking.team_id, terms.further, terms.days)

    async def windows_state(self, owner: Owner, windows: Sequence[WindowTerms]) -> WindowsState:
        """Return what Redis holds of one owner's windows; moves nothing."""
        with _named_failures:
            return await self._scripts.windows_state(owner, windows)

    async def renew_lease(self, team_id: str, name: str) -> bool:
        """Hold a lease on; return False if it had expired, and is held again."""
        with _named_failures:
            return await self._scripts.renew_lease(team_id, name, self.lease_life_us)

    async def release_lease(self, team_id: str, name: str) -> bool:
        """Give a lease back; return False if it had expired."""
        with _named_failures:
            return await self._scripts.release_lease(team_id, name)

    async def _cap(self, asking: Asking, policy: Policy | None, answer: _Answer) -> None:
        """Bring back debts that nothing explains.

        A refusal writes nothing, so the TAT would stay ahead for as long as the step.
        """
        terms, reply = answer
        capped = [LimitReason.REQUESTS] if reply.request_capped else []
        capped += [LimitReason.TOKENS] if reply.token_capped else []
        debts = []
        limits = () if policy is None else further_limits(policy, asking.subject)
        for limit, term, reading in zip(limits, terms.further, reply.further, strict=True):
            if reading.capped and isinstance(term, DebtTerms):
                capped.append(limit.reason)
                debts.append(term)
        if capped:
            await self._scripts.cap_debts(asking.team_id, terms.caps, debts)
            _count_capped(asking.team_id, capped)

    def _caps(self, policy: Policy | None) -> DebtCaps:
        longest = self._memory.debts_of(policy)
        return DebtCaps(request_us=longest.request_us, token_us=longest.token_us)


def _count_capped(team_id: str, limits: Iterable[LimitReason]) -> None:
    for limit in limits:
        _CAPPED.labels(limit.value).inc()
        _logger.error("debt longer than usage explains", team_id=team_id, limit=limit.value)
