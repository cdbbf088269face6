"""Where calls are made, seen in Redis, and explained."""

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx
from integration.bus import Bus
from integration.desk import Desk
from integration.edge_proxy.records import Records
from integration.edge_proxy.world import CHAT, PEPPER, EdgeProcess, Team, asked
from integration.fake_provider.process import FakeProcess
from integration.fake_provider.witness import Witness
from integration.services import ServiceProcess
from redis.asyncio import Redis

from contracts.admission import LIMITS, LimitExplanation, LimitReason, LimitsRequest
from kit.ids import new_id
from kit.keys import new_key
from redis_scripts.keys import team_keys

LEASE_S = 5.0
FAST = {"rpm": 60_000_000, "tpm": 10**9}


@dataclass(frozen=True, slots=True)
class Held:
    """A call in flight, and the gate that it waits at."""

    gate: str
    call: asyncio.Task[httpx.Response]


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Real admission between an edge and Redis."""

    desk: Desk
    provider: FakeProcess
    edge: EdgeProcess
    redis: Redis
    records: Records
    witness: Witness
    control_plane: Bus
    admission: ServiceProcess

    async def open_team(self, balance_usd: str = "5", **limits: Any) -> tuple[Team, str]:
        """Open a team in a tier of its own, fast but for these limits; return both."""
        tier_id = await self.desk.open_tier(**{**FAST, **limits})
        team_id = await self.desk.open_team(tier_id, balance_usd=balance_usd)
        made = new_key(PEPPER)
        secret_hash = bytes.fromhex(made.secret_hash)
        await self.desk.add_key(team_id, secret_hash=secret_hash, key_id=made.key_id)
        return Team(team_id, made.key_id, made.text), tier_id

    async def ask(
        self, team: Team, edge: EdgeProcess | None = None, *, stream: bool = False, **knobs: Any
    ) -> httpx.Response:
        """Ask for a completion, by default through the steady edge; return the whole answer."""
        async with httpx.AsyncClient(base_url=(edge or self.edge).url, timeout=60) as http:
            body = asked(team, more={"stream": stream}, **knobs)
            return await http.post(CHAT, headers=team.headers, json=body)

    async def hold(self, team: Team, count: int, edge: EdgeProcess | None = None) -> list[Held]:
        """Have so many more streams in flight, each waiting at a gate of its own."""
        before = (await self.witness.counts(marker=team.team_id))["requests"]
        held = []
        for _ in range(count):
            gate = new_id()
            ask = self.ask(team, edge, stream=True, gate=gate, gate_after_chunks=2)
            held.append(Held(gate, asyncio.create_task(ask)))
        await self.witness.requests(before + count, marker=team.team_id)
        return held

    async def end(self, *held: Held) -> None:
        """Have the provider finish these calls; returns when their clients have all of it."""
        for each in held:
            await self.witness.open_gate(each.gate)
            answer = await each.call
            assert answer.status_code == httpx.codes.OK, answer.text

    async def leases(self, team: Team) -> dict[str, int]:
        """Return when each lease expires, unix microseconds of the Redis clock."""
        found: Any = await self.redis.zrange(team_keys(team.team_id).leases, 0, -1, withscores=True)
        return {name.decode(): int(expires_us) for name, expires_us in found}

    async def now_us(self) -> int:
        """Return the Redis clock."""
        seconds, micros = await self.redis.time()
        return int(seconds) * 1_000_000 + int(micros)

    async def explained(self, team: Team) -> LimitExplanation:
        """Return what admission says of the team's calls in flight."""
        reply = await self.control_plane.ask(LIMITS, LimitsRequest(team_id=team.team_id))
        (found,) = [one for one in reply.explained if one.reason is LimitReason.CONCURRENCY]
        explained: LimitExplanation = found
        return explained


def is_refused(answer: httpx.Response) -> bool:
    """Return whether it was refused because too many calls are in flight; else it succeeded."""
    if answer.status_code == httpx.codes.OK:
        return False
    assert answer.status_code == httpx.codes.TOO_MANY_REQUESTS, answer.text
    assert answer.json()["error"]["code"] == "concurrent_limit"
    return True
