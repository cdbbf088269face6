"""One run: teams, load, faults, rest, and the verdict."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
from faults import gather, rest
from faults.evidence import Evidence
from faults.load.admin import Admin
from faults.load.clients import Clients
from faults.load.office import Office
from faults.load.teams import open_teams
from faults.report import Report
from faults.rules import check
from faults.scene import Scene
from faults.seeds import chance
from faults.store_witness import StoreWitness
from faults.stream_witness import StreamWitness
from faults.strikes.fault import Fault, Kind
from faults.strikes.striker import Density, Striker, Tell
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
    density: Density = field(default_factory=Density)


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
    except Exception:
        tell(f"logs are kept in {world.keep_logs()}")
        raise
    else:
        return report
    finally:
        await world.close()


class _Run:
    def __init__(self, world: World, scenario: Scenario, tell: Tell) -> None:
        self._world = world
        self._scenario = scenario
        self._tell = tell
        self._store = StoreWitness(world)
        self._stream = StreamWitness(world)

    async def carry_out(self) -> Report:
        admin, rng = Admin(self._world.stack), chance(self._scenario.seed)
        try:
            teams, opened = await open_teams(admin, self._scenario.teams, rng)
            clients = Clients(self._world, teams, self._scenario.seed)
            office = Office(admin, teams, rng, opened)
            await self._store.start()
            self._stream.start()
            return await self._storm_and_rest(Scene(self._world, teams, clients, office))
        finally:
            await self._store.stop()
            await self._stream.stop()
            await admin.close()

    async def _storm_and_rest(self, scene: Scene) -> Report:
        clocks_apart_us = _clocks_apart_us()
        striker = Striker(scene, self._scenario.seed, self._scenario.density, self._tell)
        problems = await self._storm(scene, striker)
        problems += await self._rest(scene)
        if abs(_clocks_apart_us() - clocks_apart_us) > _STEP_US:
            problems.append("this machine's clock was stepped: times prove nothing")
        evidence = await self._evidence(scene, striker, problems)
        return Report(
            scenario=self._scenario.name,
            seed=self._scenario.seed,
            evidence=evidence,
            changes=scene.office.changes,
            struck=striker.struck,
            fizzled=striker.fizzled,
            violations=check(evidence),
        )

    async def _storm(self, scene: Scene, striker: Striker) -> list[str]:
        """Let faults strike under load; return who isn't back when all are healed."""
        scene.clients.start(self._scenario.applications)
        scene.office.start()
        await asyncio.sleep(self._scenario.calm_s)
        await striker.run(self._possible(self._scenario.faults))
        await striker.again(Kind.CRASH)
        problems = await rest.heal(self._world)
        await asyncio.sleep(self._scenario.calm_s)
        await asyncio.gather(scene.clients.stop(), scene.office.stop())
        self._tell(f"the storm is over: {len(scene.clients.history)} requests")
        return problems

    async def _rest(self, scene: Scene) -> list[str]:
        """Wait until everything has come to rest; return what hasn't."""
        problems = await rest.leave_phantom_debits(scene)
        problems += await rest.answers_again(scene)
        problems += await rest.come_to_rest(self._world)
        self._tell("at rest")
        await rest.caches_come_to_agree(self._world, scene.team_ids)
        self._tell("caches agree, or had their time")
        await self._stream.catch_up()
        return problems + await rest.refuses(scene)

    async def _evidence(self, scene: Scene, striker: Striker, problems: Sequence[str]) -> Evidence:
        books = await gather.books(self._world, scene.team_ids)
        return Evidence(
            requests=scene.clients.history,
            postings=scene.office.postings,
            revocations=scene.office.revocations,
            windows=striker.windows,
            served=gather.served(self._world.journal),
            records=books.records,
            charges=books.charges,
            entries=books.entries,
            accounts=books.accounts,
            prices=books.prices,
            cached=await gather.cached(self._world, scene.team_ids),
            published_at_us=self._stream.published_at_us,
            debits=self._store.debits,
            versions=self._store.versions,
            dead_letters=await gather.dead_letters(self._world),
            never_told=await gather.never_told(self._world),
            unproved=await gather.unproved(self._world),
            unrecovered=problems,
        )

    def _possible(self, faults: Sequence[Fault]) -> Sequence[Fault]:
        if self._world.disk.is_small:
            return faults
        self._tell("no disk of its own may be mounted here: no disk is filled up")
        return [fault for fault in faults if fault.kind is not Kind.DISK_FULL]


def _clocks_apart_us() -> int:
    return (time.time_ns() - time.monotonic_ns()) // 1000
