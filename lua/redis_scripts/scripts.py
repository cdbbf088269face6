"""One typed method per script."""

import random
from collections.abc import Sequence

from redis_scripts import keys as lives
from redis_scripts.errors import OutOfRangeError
from redis_scripts.keys import life_ms, team_keys
from redis_scripts.pipelines import Pipelines, RedisClient
from redis_scripts.sources import Script, load
from redis_scripts.values import (
    BalanceAdjustment,
    BalanceFill,
    BalanceRefresh,
    BalanceRepair,
    CappedDebts,
    Charge,
    DebtCaps,
    PostflightReply,
    PreflightReply,
    PreflightTerms,
    SettledBalance,
    TeamState,
    TierEviction,
    TierFill,
    Verdict,
)

# A Lua number is a double: integers are exact below this.
_EXACT_LIMIT = 2**53
# Redis moves money in signed 64-bit integers: about ±9.2 billion USD.
_MONEY_LIMIT = 2**63

_PREFLIGHT = load("preflight")
_POSTFLIGHT = load("postflight")
_CAP_DEBTS = load("cap_debts")
_LIMITS_STATE = load("limits_state")
_FILL_TIER = load("fill_tier")
_EVICT_TIER = load("evict_tier")
_FILL_BALANCE = load("fill_balance")
_ADJUST_BALANCE = load("adjust_balance")
_REFRESH_BALANCE = load("refresh_balance")
_REPAIR_BALANCE = load("repair_balance")


class RedisScripts:
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
        reply = await self._pipelines.run(
            _PREFLIGHT,
            (keys.request_tat, keys.token_tat, keys.tier, keys.balance),
            (
                terms.tier_id,
                _exact(terms.interval_us),
                _exact(terms.request_burst_us),
                _exact(terms.token_burst_us),
                self._tat_life_ms(),
                _exact(terms.caps.request_us),
                _exact(terms.caps.token_us),
            ),
        )
        return PreflightReply(
            Verdict(reply[0].decode()),
            reply[1],
            reply[2],
            reply[3],
            _text(reply[4]),
            _integer(reply[5]),
            bool(reply[6]),
            bool(reply[7]),
        )

    async def postflight(self, team_id: str, charge: Charge) -> PostflightReply:
        """Charge one attempt. Send it once: a repeated one would charge twice.

        A cost beyond the cap counts as the cap, as the debt it would make would.
        """
        keys = team_keys(team_id)
        reply = await self._pipelines.run(
            _POSTFLIGHT,
            (keys.token_tat, keys.request_tat, keys.balance, keys.balance_version),
            (
                _exact(min(charge.cost_us, charge.caps.token_us)),
                _debit(charge.debit_nano_usd),
                self._tat_life_ms(),
                self._balance_life_ms(),
                _exact(charge.caps.token_us),
                _exact(charge.caps.request_us),
            ),
        )
        now_us, request_tat_us, token_tat_us, balance, request_capped, token_capped = reply
        return PostflightReply(
            now_us,
            request_tat_us,
            token_tat_us,
            _integer(balance),
            bool(request_capped),
            bool(token_capped),
        )

    async def cap_debts(self, team_id: str, caps: DebtCaps) -> CappedDebts:
        """Bring TATs beyond their caps back to them, after a reply said that one was capped."""
        keys = team_keys(team_id)
        reply = await self._pipelines.run(
            _CAP_DEBTS,
            (keys.request_tat, keys.token_tat),
            (_exact(caps.request_us), _exact(caps.token_us), self._tat_life_ms()),
        )
        return CappedDebts(reply[0], reply[1], reply[2], bool(reply[3]), bool(reply[4]))

    async def limits_state(self, team_id: str) -> TeamState:
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
            ),
            (),
        )
        tier_version, balance, balance_version = map(_integer, rest)
        return TeamState(
            now_us,
            _integer(request_tat),
            _integer(token_tat),
            _text(tier),
            tier_version,
            balance,
            balance_version,
        )

    async def fill_tier(self, team_id: str, tier_id: str, version: int) -> TierFill:
        """Cache the tier that the database had at `version`, unless a newer one was announced."""
        keys = team_keys(team_id)
        life = life_ms(lives.TIER_LIFE_MS, lives.TIER_JITTER_MS, self._rng)
        reply = await self._pipelines.run(
            _FILL_TIER,
            (keys.tier, keys.tier_version),
            (tier_id, _exact(version), life, lives.TIER_FENCE_LIFE_MS),
        )
        return TierFill(reply.decode())

    async def evict_tier(self, team_id: str, version: int) -> TierEviction:
        """Forget a tier mapping older than `version`, and refuse older fills from now on."""
        keys = team_keys(team_id)
        reply = await self._pipelines.run(
            _EVICT_TIER,
            (keys.tier, keys.tier_version),
            (_exact(version), lives.TIER_FENCE_LIFE_MS),
        )
        return TierEviction(reply.decode())

    async def fill_balance(self, team_id: str, settled: SettledBalance) -> BalanceFill:
        """Cache the settled balance if none is cached and no newer version was announced."""
        reply = await self._on_balance(
            _FILL_BALANCE, team_id, (_money(settled.balance_nano_usd), _exact(settled.version))
        )
        return BalanceFill(reply)

    async def adjust_balance(
        self, team_id: str, delta_nano_usd: int, version: int
    ) -> BalanceAdjustment:
        """Move the cached balance by a credit or adjustment whose entry made it `version`."""
        reply = await self._on_balance(
            _ADJUST_BALANCE, team_id, (_money(delta_nano_usd), _exact(version))
        )
        return BalanceAdjustment(reply)

    async def refresh_balance(self, team_id: str, settled: SettledBalance) -> BalanceRefresh:
        """Replace the cached balance by a settled one of a newer version, or cache it anew."""
        reply = await self._on_balance(
            _REFRESH_BALANCE, team_id, (_money(settled.balance_nano_usd), _exact(settled.version))
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
                _money(expected_nano_usd),
                _money(settled.balance_nano_usd),
                _exact(settled.version),
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


def _exact(number: int) -> int:
    """Let through what a script can calculate with."""
    if not 0 <= number < _EXACT_LIMIT:
        raise OutOfRangeError
    return number


def _money(nano_usd: int) -> int:
    if not -_MONEY_LIMIT <= nano_usd < _MONEY_LIMIT:
        raise OutOfRangeError
    return nano_usd


def _debit(nano_usd: int) -> int:
    if nano_usd < 0:
        raise OutOfRangeError
    return _money(nano_usd)


def _integer(value: bytes | None) -> int | None:
    return None if value is None else int(value)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
