"""One typed method per script."""

import random
from collections.abc import Iterable, Sequence

from redis_scripts import keys as lives
from redis_scripts.further import (
    ANY_DAY,
    DayWindow,
    DebtTerms,
    Further,
    Placed,
    charged,
    judged,
    read,
    readings,
    where,
)
from redis_scripts.keys import day_counter, life_ms, team_keys
from redis_scripts.numbers import debit, exact, integer, money, text
from redis_scripts.pipelines import Pipelines, RedisClient
from redis_scripts.replies import preflight_reply
from redis_scripts.sources import Script, load
from redis_scripts.spend_scripts import SpendScripts
from redis_scripts.values import (
    BalanceAdjustment,
    BalanceFill,
    BalanceRefresh,
    BalanceRepair,
    CappedDebts,
    Charge,
    DayUsage,
    DebtCaps,
    PostflightReply,
    PreflightReply,
    PreflightTerms,
    SettledBalance,
    TeamState,
    TierEviction,
    TierFill,
)
from redis_scripts.window_scripts import WindowScripts

_US_PER_MS = 1_000

_PREFLIGHT = load("preflight")
_POSTFLIGHT = load("postflight")
_CAP_DEBTS = load("cap_debts")
_LIMITS_STATE = load("limits_state")
_RENEW_LEASE = load("renew_lease")
_RELEASE_LEASE = load("release_lease")
_FILL_DAY = load("fill_day")
_FILL_TIER = load("fill_tier")
_EVICT_TIER = load("evict_tier")
_FILL_BALANCE = load("fill_balance")
_ADJUST_BALANCE = load("adjust_balance")
_REFRESH_BALANCE = load("refresh_balance")
_REPAIR_BALANCE = load("repair_balance")


class RedisScripts(SpendScripts, WindowScripts):
    """The scripts on one server or cluster, whose client must return bytes and never retry.

    Calls that wait at the same time share a pipeline. Every method raises:

    * `InvalidTeamIdError`, `OutOfRangeError`: nothing was sent.
    * `NotDoneError`: the server refused; nothing was written.
    * `OutcomeUnknownError`: no answer came; the script may have run. Repeating it is up to the
      caller, and never right for `postflight`.

    A caller who is cancelled while its call still waits is not sent; later, its reply is dropped.
    """

    def __init__(self, client: RedisClient, rng: random.Random | None = None) -> None:
        self._pipelines = Pipelines(client)
        # Jitter only, no secret.
        self._rng = rng or random.Random()  # noqa: S311

    async def drain(self) -> None:
        """Wait until every call is answered. To be awaited before the client is closed."""
        await self._pipelines.drain()

    async def preflight(self, team_id: str, terms: PreflightTerms) -> PreflightReply:
        """Decide one request of a team. Only an admitted one advances the request TAT."""
        keys = team_keys(team_id)
        more = (*terms.further, *terms.windows)
        reply = await self._pipelines.run(
            _PREFLIGHT,
            (
                *(keys.request_tat, keys.token_tat, keys.tier, keys.balance),
                *_names(team_id, more),
            ),
            (
                terms.tier_id,
                exact(terms.interval_us),
                exact(terms.request_burst_us),
                exact(terms.token_burst_us),
                self._tat_life_ms(),
                exact(terms.caps.request_us),
                exact(terms.caps.token_us),
                *judged(terms.shadow, more, terms.days),
            ),
        )
        return preflight_reply(reply, terms)

    async def postflight(self, team_id: str, charge: Charge) -> PostflightReply:
        """Charge one attempt. Send it once: a repeated one would charge twice.

        A cost beyond the cap counts as the cap, as the debt it would make would.
        """
        keys = team_keys(team_id)
        reply = await self._pipelines.run(
            _POSTFLIGHT,
            (
                *(keys.token_tat, keys.request_tat, keys.balance, keys.balance_version),
                *_names(team_id, charge.further),
            ),
            (
                exact(min(charge.cost_us, charge.caps.token_us)),
                debit(charge.debit_nano_usd),
                self._tat_life_ms(),
                self._balance_life_ms(),
                exact(charge.caps.token_us),
                exact(charge.caps.request_us),
                *charged(charge.further, charge.days),
            ),
        )
        now_us, request_tat_us, token_tat_us, balance, request_capped, token_capped, *more = reply
        return PostflightReply(
            now_us,
            request_tat_us,
            token_tat_us,
            integer(balance),
            bool(request_capped),
            bool(token_capped),
            readings(*more),
        )

    async def cap_debts(
        self, team_id: str, caps: DebtCaps, further: Sequence[DebtTerms] = ()
    ) -> CappedDebts:
        """Bring TATs beyond their caps back to them, after a reply said that one was capped."""
        keys = team_keys(team_id)
        reply = await self._pipelines.run(
            _CAP_DEBTS,
            (keys.request_tat, keys.token_tat, *_names(team_id, further)),
            (
                self._tat_life_ms(),
                exact(caps.request_us),
                exact(caps.token_us),
                *(exact(debt.cap_us) for debt in further),
            ),
        )
        return CappedDebts(reply[0], reply[1], reply[3], bool(reply[2]), bool(reply[4]))

    async def limits_state(
        self, team_id: str, further: Sequence[Further] = (), days: DayWindow = ANY_DAY
    ) -> TeamState:
        """Read all that is cached of a team. Writes nothing and extends nothing."""
        keys = team_keys(team_id)
        now_us, request_tat, token_tat, tier, *rest = await self._pipelines.run(
            _LIMITS_STATE,
            (
                keys.request_tat,
                keys.token_tat,
                keys.tier,
                keys.tier_version,
                keys.balance,
                keys.balance_version,
                *_names(team_id, further),
            ),
            tuple(read(further, days)),
        )
        tier_version, balance, balance_version, *more = map(integer, rest)
        return TeamState(
            now_us,
            integer(request_tat),
            integer(token_tat),
            text(tier),
            tier_version,
            balance,
            balance_version,
            tuple(more),
        )

    async def renew_lease(self, team_id: str, name: str, life_us: int) -> bool:
        """Hold a lease for `life_us` from now, and again if it had expired; return if it hadn't."""
        key = team_keys(team_id).leases
        arguments = (name, exact(life_us), lives.TAT_LIFE_MS)
        return bool(await self._pipelines.run(_RENEW_LEASE, (key,), arguments))

    async def release_lease(self, team_id: str, name: str) -> bool:
        """Give a lease back; return whether it was there."""
        key = team_keys(team_id).leases
        return bool(await self._pipelines.run(_RELEASE_LEASE, (key,), (name,)))

    async def fill_day(self, team_id: str, used: DayUsage) -> int:
        """Count a day from what the database said, where it isn't counted; return how many were."""
        team_keys(team_id)
        names = [
            day_counter(used.start_us, used.end_us, what).of(team_id)
            for what in ("requests", "tokens")
        ]
        life = life_ms(lives.DAY_COUNTER_LIFE_MS, lives.DAY_COUNTER_JITTER_MS, self._rng)
        expires_ms = used.end_us // _US_PER_MS + life
        filled: int = await self._pipelines.run(
            _FILL_DAY, names, (exact(used.requests), exact(used.tokens), exact(expires_ms))
        )
        return filled

    async def fill_tier(self, team_id: str, tier_id: str, version: int) -> TierFill:
        """Cache the tier that the database had at `version`, unless a newer one was announced."""
        keys = team_keys(team_id)
        life = life_ms(lives.TIER_LIFE_MS, lives.TIER_JITTER_MS, self._rng)
        reply = await self._pipelines.run(
            _FILL_TIER,
            (keys.tier, keys.tier_version),
            (tier_id, exact(version), life, lives.TIER_FENCE_LIFE_MS),
        )
        return TierFill(reply.decode())

    async def evict_tier(self, team_id: str, version: int) -> TierEviction:
        """Forget a tier mapping older than `version`, and refuse older fills from now on."""
        keys = team_keys(team_id)
        reply = await self._pipelines.run(
            _EVICT_TIER,
            (keys.tier, keys.tier_version),
            (exact(version), lives.TIER_FENCE_LIFE_MS),
        )
        return TierEviction(reply.decode())

    async def fill_balance(self, team_id: str, settled: SettledBalance) -> BalanceFill:
        """Cache the settled balance if none is cached and no newer version was announced."""
        reply = await self._on_balance(
            _FILL_BALANCE, team_id, (money(settled.balance_nano_usd), exact(settled.version))
        )
        return BalanceFill(reply)

    async def adjust_balance(
        self, team_id: str, delta_nano_usd: int, version: int
    ) -> BalanceAdjustment:
        """Move the cached balance by a credit or adjustment whose entry made it `version`."""
        reply = await self._on_balance(
            _ADJUST_BALANCE, team_id, (money(delta_nano_usd), exact(version))
        )
        return BalanceAdjustment(reply)

    async def refresh_balance(self, team_id: str, settled: SettledBalance) -> BalanceRefresh:
        """Replace the cached balance by a settled one of a newer version, or cache it anew."""
        reply = await self._on_balance(
            _REFRESH_BALANCE, team_id, (money(settled.balance_nano_usd), exact(settled.version))
        )
        return BalanceRefresh(reply)

    async def repair_balance(
        self, team_id: str, expected_nano_usd: int, settled: SettledBalance
    ) -> BalanceRepair:
        """Replace a cached balance that is still `expected_nano_usd`, of the settled version."""
        reply = await self._on_balance(
            _REPAIR_BALANCE,
            team_id,
            (
                money(expected_nano_usd),
                money(settled.balance_nano_usd),
                exact(settled.version),
            ),
        )
        return BalanceRepair(reply)

    async def _on_balance(self, script: Script, team_id: str, arguments: Sequence[int]) -> str:
        keys = team_keys(team_id)
        reply = await self._pipelines.run(
            script, (keys.balance, keys.balance_version), (*arguments, self._balance_life_ms())
        )
        return str(reply, "ascii")

    def _tat_life_ms(self) -> int:
        return life_ms(lives.TAT_LIFE_MS, lives.TAT_JITTER_MS, self._rng)

    def _balance_life_ms(self) -> int:
        return life_ms(lives.BALANCE_LIFE_MS, lives.BALANCE_JITTER_MS, self._rng)


def _names(team_id: str, limits: Sequence[Placed]) -> Iterable[str]:
    return (place.of(team_id) for limit in limits for place in where(limit))
