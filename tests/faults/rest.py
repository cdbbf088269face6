"""After the storm: every fault is healed, and everything must come to rest by itself."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial

import asyncpg
import httpx
import nats.errors
from faults import gather
from faults.evidence import Evidence, Request, Told
from faults.load.clients import EDGES
from faults.rules.index import Index
from faults.rules.store import caches_agree
from faults.scene import Scene
from faults.strikes.fault import PROGRAMS, SERVERS
from faults.world import World

from contracts.control import CONTROL_EVENTS
from contracts.inference import INFERENCE_RECORDS
from quotagate.stack.errors import UnhealthyError

_READY_WITHIN_S = 60
_REST_WITHIN_S = 90
_CACHES_WITHIN_S = 30
_ANSWERS_WITHIN_S = 20
_PHANTOMS = 2
_POLL_S = 0.4
_CONSUMERS = ((INFERENCE_RECORDS.name, "settlement"), (CONTROL_EVENTS.name, "tier-cache"))
_UNSEEN = (OSError, TimeoutError, httpx.HTTPError, nats.errors.Error, asyncpg.PostgresError)

Question = Callable[[], Awaitable[str | None]]
"""None: it is as it should be; otherwise what isn't."""


async def _until(question: Question, within_s: float) -> str | None:
    """Ask until it is as it should be; return what still isn't after so long."""
    deadline_s = time.monotonic() + within_s
    while True:
        try:
            problem = await question()
        except _UNSEEN as error:
            problem = f"{type(error).__name__}: {error}"
        if problem is None or time.monotonic() > deadline_s:
            return problem
        await asyncio.sleep(_POLL_S)


async def heal(world: World) -> list[str]:
    """End every trouble, and wait for every program; return which don't come back."""
    for armed in world.crash_folder.iterdir():
        armed.unlink(missing_ok=True)
    await world.wiring.end_all()
    return [problem for name in (*SERVERS, *PROGRAMS) for problem in await _not_ready(world, name)]


async def _not_ready(world: World, name: str) -> list[str]:
    try:
        await asyncio.to_thread(world.stack.wait_ready, name, _READY_WITHIN_S)
    except UnhealthyError as error:
        return [f"not ready: {error}"]
    return []


async def leave_phantom_debits(scene: Scene) -> list[str]:
    """Have edges die between debit and record, for teams that fall silent after that.

    Without traffic no settlement will tell the cache what is right. Returns which don't come back.
    """
    world, problems = scene.world, []
    for team in [team for team in scene.teams if team.kind == "rich"][-_PHANTOMS:]:
        armed = world.crash_folder / "edge.charged"
        armed.touch()
        await scene.clients.ask(team)
        armed.unlink(missing_ok=True)
        problems += await _not_ready(world, "edge-proxy")
    return problems


async def answers_again(scene: Scene) -> list[str]:
    """See that each edge serves again a team that has money and room."""
    team = next(team for team in scene.teams if team.kind == "rich")

    async def ask(edge: str) -> str | None:
        request = await scene.clients.ask(team, edge)
        return None if request.told is Told.COMPLETE else f"{edge}: {_shown(request)}"

    problems = [await _until(partial(ask, edge), _ANSWERS_WITHIN_S) for edge in EDGES]
    return [problem for problem in problems if problem is not None]


async def come_to_rest(world: World) -> list[str]:
    """Wait until nothing is in flight, spooled, unpublished, unread or pending any more."""
    async with httpx.AsyncClient(timeout=5) as http:
        problem = await _until(lambda: _unrest(world, http), _REST_WITHIN_S)
    return [] if problem is None else [f"no rest: {problem}"]


async def caches_come_to_agree(world: World, teams: frozenset[str]) -> None:
    """Wait until all caches agree, as long as they may take; what disagrees then, a rule says."""

    async def disagreement() -> str | None:
        books, cached = await gather.books(world, teams), await gather.cached(world, teams)
        evidence = Evidence(accounts=books.accounts, cached=cached)
        return next((str(each) for each in caches_agree(Index(evidence))), None)

    await _until(disagreement, _CACHES_WITHIN_S)


async def refuses(scene: Scene) -> list[str]:
    """See that teams without money are told so, by every edge."""
    books = await gather.books(scene.world, scene.team_ids)
    negative = {account.team_id for account in books.accounts if account.balance_usd < 0}
    problems = []
    for team in scene.teams:
        if team.team_id in negative:
            for edge in EDGES:
                request = await scene.clients.ask(team, edge)
                if request.told is not Told.REFUSED:
                    problems.append(f"{team.team_id} owes money: {_shown(request)}")
    return problems


def _shown(request: Request) -> str:
    return f"{request.told}, {request.status} {request.reason}"


async def _unrest(world: World, http: httpx.AsyncClient) -> str | None:
    for edge in EDGES:
        text = (await http.get(f"{world.stack.url(edge)}/metrics")).text
        for gauge in ("quotagate_in_flight", "quotagate_spool_depth"):
            if (value := _sample(text, gauge)) != 0:
                return f"{edge}: {gauge} is {value}"
    query = {"outcome": "in_flight"}
    counts = await http.get(f"{world.stack.url('fake-provider')}/_fake/counts", params=query)
    if counts.json()["requests"]:
        return f"the provider is at {counts.json()['requests']} requests"
    return await _unread(world) or await _undone(world)


def _sample(text: str, name: str) -> float | None:
    for line in text.splitlines():
        if line.startswith(f"{name} "):
            return float(line.rpartition(" ")[2])
    return None


async def _unread(world: World) -> str | None:
    async with world.nats() as client:
        for stream, consumer in _CONSUMERS:
            info = await client.jetstream().consumer_info(stream, consumer)
            if info.num_pending or info.num_ack_pending:
                return f"{consumer}: {info.num_pending} unread, {info.num_ack_pending} in hand"
    return None


async def _undone(world: World) -> str | None:
    async with world.postgres() as connection:
        pending = await connection.fetchval(
            "SELECT count(*) FROM inference_record WHERE state = 'PENDING'"
        )
        owed = await connection.fetchval("SELECT count(*) FROM outbox WHERE published_at IS NULL")
    return f"{pending} records pending, {owed} events unpublished" if pending or owed else None
