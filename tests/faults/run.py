"""One run: teams, load, faults, rest, and the verdict."""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from faults import gather, rest
from faults.evidence import Evidence, Posting
from faults.load.admin import Admin
from faults.load.clients import Clients
from faults.load.office import Office
from faults.load.teams import Team, open_teams
from faults.report import Report
from faults.rules import check
from faults.scene import Scene
from faults.seeds import chance
from faults.store_witness import StoreWitness
from faults.stream_witness import StreamWitness
from faults.strikes.fault import Fault, Kind
from faults.strikes.striker import Striker, Tell
from faults.world import World

_STEP_US = 50_000


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a run is made of."""

    name: str
    seed: int
    faults: Sequence[Fault]
    teams: int = 24
    applications: int = 2
    """Of each team, each with one request at a time."""
    calm_s: float = 3.0
    """Load without faults, before the storm and after it."""


def _quiet(_text: str) -> None:
    return


async def run(scenario: Scenario, tell: Tell = _quiet) -> Report:
    """Carry a scenario out in a world of its own."""
    world = World(scenario.name)
    try:
        await world.open()
        tell("the world is up")
        report = await _Run(world, scenario, tell).carry_out()
        if report.violations:
            kept = world.keep_logs()
            (kept / "evidence.json").write_bytes(msgspec.json.encode(report.evidence))
            tell(f"logs and evidence are kept in {kept}")
        return report
    finally:
        await world.close()


class _Run:
    def __init__(self, world: World, scenario: Scenario, tell: Tell) -> None:
        self._world = world
        self._scenario = scenario
        self._tell = tell
        self._admin = Admin(world.stack)
        self._store = StoreWitness(world)
        self._stream = StreamWitness(world)

    async def carry_out(self) -> Report:
        try:
            rng = chance(self._scenario.seed)
            teams, opened = await open_teams(self._admin, self._scenario.teams, rng)
            await self._store.start()
            self._stream.start()
            return await self._storm(teams, opened, rng)
        finally:
            await self._store.stop()
            await self._stream.stop()
            await self._admin.close()

    async def _storm(
        self, teams: Sequence[Team], opened: Sequence[Posting], rng: random.Random
    ) -> Report:
        world, seed = self._world, self._scenario.seed
        clocks_apart_us = _clocks_apart_us()
        clients = Clients(world, teams, seed)
        office = Office(self._admin, teams, rng)
        striker = Striker(Scene(world, teams, clients, office), seed, self._tell)
        clients.start(self._scenario.applications)
        office.start()
        await asyncio.sleep(self._scenario.calm_s)
        await striker.run(self._possible(self._scenario.faults))
        await striker.again(Kind.CRASH)
        problems = list(await rest.heal(world))
        await asyncio.sleep(self._scenario.calm_s)
        await asyncio.gather(clients.stop(), office.stop())
        self._tell(f"the storm is over: {len(clients.history)} requests")
        await rest.leave_phantom_debits(world, clients, teams)
        problems += await rest.answers_again(clients, teams)
        problems += await rest.come_to_rest(world)
        self._tell("at rest")
        team_ids = frozenset(team.team_id for team in teams)
        await rest.caches_come_to_agree(world, team_ids)
        self._tell("caches agree, or had their time")
        await self._stream.catch_up()
        books = await gather.books(world, team_ids)
        negative = frozenset(each.team_id for each in books.accounts if each.balance_usd < 0)
        problems += await rest.refuses(clients, teams, negative)
        if abs(_clocks_apart_us() - clocks_apart_us) > _STEP_US:
            problems.append("this machine's clock was stepped: times prove nothing")
        evidence = Evidence(
            requests=clients.history,
            postings=[*opened, *office.postings],
            revocations=office.revocations,
            windows=striker.windows,
            served=gather.served(world.journal),
            records=books.records,
            charges=books.charges,
            entries=books.entries,
            accounts=books.accounts,
            prices=books.prices,
            cached=await gather.cached(world, team_ids),
            published_at_us=self._stream.published_at_us,
            debits=self._store.debits,
            versions=self._store.versions,
            dead_letters=await gather.dead_letters(world),
            unrecovered=problems,
        )
        return Report(
            scenario=self._scenario.name,
            seed=seed,
            evidence=evidence,
            changes=office.changes,
            struck=striker.struck,
            fizzled=striker.fizzled,
            violations=check(evidence),
        )

    def _possible(self, faults: Sequence[Fault]) -> Sequence[Fault]:
        if self._world.disk.is_small:
            return faults
        self._tell("no disk of its own may be mounted here: no disk is filled up")
        return [fault for fault in faults if fault.kind is not Kind.DISK_FULL]


def _clocks_apart_us() -> int:
    return (time.time_ns() - time.monotonic_ns()) // 1000
