"""What further limits cost in the decision, and that a tier without them doesn't pay for them.

The preflight script alone, as admission sends it, on the stack's Valkey; tiers take turns, so that
a busy machine is as busy for each. Counted are Valkey's own microseconds in the script and the CPU
of making its terms and reading its reply.
"""

import asyncio
import itertools
import resource
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import uvloop
from bench.figures import Figures
from bench.plan import Plan
from bench.stage import Stage
from redis.asyncio import Redis

from admission.domain.limits import Subject
from admission.domain.own_limits import as_met_by
from admission.store.terms import Asking, Terms
from contracts.admission import KeyLimits, Policy, Rates
from contracts.windows import Window
from kit.calendar import days_around
from kit.ids import new_id
from redis_scripts import DayUsage, DebtCaps, RedisScripts, Verdict
from redis_scripts.keys import team_keys

_IN_FLIGHT = 64
_ROUNDS = 4
_US_PER_S = 1_000_000
_LEASE_US = 30 * _US_PER_S
_CAPS = DebtCaps(request_us=2**45, token_us=2**45)
_PLAIN = Policy(tier_id="bench", rpm=60_000_000, tpm=10**12, request_burst=60_000_000)
_FAST = Rates(rpm=60_000_000, tpm=10**12, request_burst=60_000_000)
_MOST = 10**12


def _with(**limits: object) -> Policy:
    return Policy(
        tier_id="bench",
        rpm=_PLAIN.rpm,
        tpm=_PLAIN.tpm,
        request_burst=_PLAIN.request_burst,
        **limits,  # type: ignore[arg-type] # each of its own type
    )


_ALL = {
    "input_tpm": 10**12,
    "output_tpm": 10**12,
    "max_concurrency": _MOST,
    "daily_requests": _MOST,
    "daily_tokens": _MOST,
    "key_rates": _FAST,
    "model_rates": {"m": _FAST},
}
_POLICIES: Mapping[str, Policy] = MappingProxyType(
    {
        "plain": _PLAIN,
        "key_rates": _with(key_rates=_FAST),
        "input_output": _with(input_tpm=10**12, output_tpm=10**12),
        "concurrency": _with(max_concurrency=_MOST),
        "day": _with(daily_requests=_MOST, daily_tokens=_MOST),
        "all": _with(**_ALL),
    }
)
_OWN = KeyLimits(rpm=_FAST.rpm, request_burst=_FAST.request_burst)
"""Of a key in the plain tier: beside the tiers."""

_WINDOWS = (
    Window(group="Chat", label="Minute", limit=1_000_000, length_us=60 * _US_PER_S),
    Window(group="Chat", label="Day", limit=1_000_000, length_us=86_400 * _US_PER_S),
)
"""Of an endpoint, for a team in the plain tier."""


_BESIDE_TIERS = {"own": "a key's own limit", "windows": "two windows of the endpoint"}


class _Judged(NamedTuple):
    """A name, the tier, what the key has of its own, and the endpoint's windows."""

    name: str
    policy: Policy
    own: KeyLimits | None = None
    windows: tuple[Window, ...] = ()


@dataclass
class _Spent:
    """What a tier's decisions took."""

    calls: int = 0
    server_us: float = 0.0
    own_s: float = 0.0


def measure(stage: Stage, figures: Figures, plan: Plan) -> None:
    """Decide for each tier by turns."""
    calls = max(_IN_FLIGHT, int(plan.decisions_s * 500))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        spent = runner.run(_measured(stage.stack.servers.redis_url, calls))
    plain = spent["plain"]
    for name, each in spent.items():
        what = _BESIDE_TIERS.get(name, f"the tier {name!r}")
        server_us, own_us = each.server_us / each.calls, each.own_s / each.calls * _US_PER_S
        figures.add(f"preflight_us_{name}", server_us, "µs", f"in Valkey for {what}")
        figures.add(f"preflight_own_us_{name}", own_us, "µs", "CPU of terms, sending and reply")
        ratio = server_us / (plain.server_us / plain.calls)
        figures.add(f"preflight_ratio_{name}", ratio, "×", "of the tier without further limits")


async def _measured(redis_url: str, calls: int) -> dict[str, _Spent]:
    client: Redis = Redis.from_url(redis_url, max_connections=_IN_FLIGHT)
    try:
        scripts = RedisScripts(client)
        judged = [_Judged(name, policy) for name, policy in _POLICIES.items()]
        judged += (_Judged("own", _PLAIN, _OWN), _Judged("windows", _PLAIN, windows=_WINDOWS))
        for each in judged:
            await _open(client, scripts, f"bench-{each.name}")
        spent = {each.name: _Spent() for each in judged}
        for _ in range(_ROUNDS):
            for each in judged:
                await _decide(client, scripts, calls // _ROUNDS, each, spent[each.name])
        await scripts.drain()
    finally:
        await client.aclose()
    return spent


async def _open(client: Redis, scripts: RedisScripts, team_id: str) -> None:
    keys = team_keys(team_id)
    await client.set(keys.tier, "bench")
    await client.set(keys.balance, 10**15)
    now_us = await _now_us(client)
    start_us, end_us = days_around(now_us, "UTC").period_of(now_us)
    await scripts.fill_day(team_id, DayUsage(start_us, end_us, 0, 0))


async def _decide(
    client: Redis,
    scripts: RedisScripts,
    calls: int,
    judged: _Judged,
    spent: _Spent,
) -> None:
    name, policy, own, windows = judged
    subject, team_id = Subject("k", "m"), f"bench-{name}"
    terms, numbers = Terms(_LEASE_US), itertools.count()
    now_us = await _now_us(client)

    async def decide_some() -> None:
        while next(numbers) < calls:
            asking = Asking(team_id, subject, new_id(), windows=windows)
            made = terms.judged(as_met_by(policy, own), asking, _CAPS, now_us)
            reply = await scripts.preflight(team_id, made)
            if reply.verdict is not Verdict.ADMITTED:
                raise RuntimeError(f"{name}: {reply.verdict}")

    before, own_s = await _server_us(client), _cpu_s()
    await asyncio.gather(*(decide_some() for _ in range(_IN_FLIGHT)))
    spent.own_s += _cpu_s() - own_s
    spent.server_us += await _server_us(client) - before
    spent.calls += calls
    # Else leases would pile up, which no team's calls do.
    await client.delete(team_keys(team_id).leases)


async def _server_us(client: Redis) -> float:
    """Return the microseconds that the server has spent in scripts so far."""
    stats = await client.info("commandstats")
    return float(stats["cmdstat_evalsha"]["usec"]) if "cmdstat_evalsha" in stats else 0.0


async def _now_us(client: Redis) -> int:
    seconds, micros = await client.time()
    return int(seconds) * _US_PER_S + int(micros)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
