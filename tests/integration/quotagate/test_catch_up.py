"""A database restored to an earlier moment: the stream and the caches bring it to the present."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import asyncpg
import pytest
from integration.bus import TIMEOUT_S
from integration.quotagate.command import run_command
from integration.services import ServiceProcess
from integration.settlement.team import CallingTeam
from integration.settlement.world import World, world_of
from sqlalchemy.engine import make_url

from contracts.inference import INFERENCE_RECORDS
from quotagate.catch_up import Patience, catch_up
from quotagate.stack import Servers, Stack
from quotagate.stores import CannotTellError, StoreSettings, of_servers
from redis_scripts.keys import team_keys

QUICK = {"QUOTAGATE_SETTLE_INTERVAL_S": "0.1", "QUOTAGATE_RECONCILE_INTERVAL_S": "0.1"}
PATIENCE = Patience(standstill_s=TIMEOUT_S)
COST = Decimal("0.001")


@dataclass(slots=True)
class Machine:
    """A stack with settlement, whose database can go back to where it was."""

    stack: Stack
    settlement: ServiceProcess
    first: int
    """The sequence of the first record that is published."""

    @property
    def settings(self) -> StoreSettings:
        return of_servers(self.stack.servers)

    async def back_up(self) -> None:
        """Keep a copy of the database; settlement is stopped for it."""
        await self.settlement.stop()
        await _as_superuser(
            self.stack.servers, "CREATE DATABASE earlier TEMPLATE quotagate OWNER quotagate"
        )
        await self.settlement.start_ready()

    async def restore(self) -> None:
        """Put the copy in the place of the database."""
        await self.settlement.stop()
        await _as_superuser(
            self.stack.servers,
            "DROP DATABASE quotagate WITH (FORCE)",
            "ALTER DATABASE earlier RENAME TO quotagate",
        )
        await self.settlement.start_ready()


async def _as_superuser(servers: Servers, *statements: str) -> None:
    url = make_url(servers.database_urls["postgres"]).set(database="postgres")
    connection = await asyncpg.connect(url.render_as_string(hide_password=False))
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


@pytest.fixture
async def machine(module_servers: Stack, tmp_path: Path) -> AsyncIterator[Machine]:
    """Settlement runs; stream and cache are empty."""
    async with world_of(module_servers.servers) as world:
        await world.nats.jetstream().purge_stream(INFERENCE_RECORDS.name)
        await world.redis.flushall()
        first = (await world.nats.jetstream().stream_info(INFERENCE_RECORDS.name)).state.first_seq
    process = ServiceProcess(module_servers.servers, "settlement", tmp_path, QUICK)
    await process.start_ready()
    yield Machine(module_servers, process, max(1, first))
    await process.stop()


async def _call(world: World, team: CallingTeam, calls: int) -> None:
    """Have a team call, each call settled by itself, so that each is a version of the account."""
    before = len(await world.books.charges(team.team_id))
    for call in range(1, calls + 1):
        await team.publish(team.record())
        async with asyncio.timeout(TIMEOUT_S):
            while len(await world.books.charges(team.team_id)) < before + call:
                await asyncio.sleep(0.02)


async def test_what_was_observed_since_is_charged_again_and_the_caches_follow(
    machine: Machine,
) -> None:
    async with world_of(machine.stack.servers) as world:
        team, other = await world.open_team(), await world.open_team()
        await _call(world, team, 2)
    await machine.back_up()
    async with world_of(machine.stack.servers) as world:
        await world.cached(team).write(9_998_000_000, 3)
        await world.cached(other).write(10_000_000_000, 1)
        await _call(world, _again(team, world), 4)
        tier_id = await world.desk.open_tier()
        version = await world.desk.move_team(team.team_id, tier_id)
        await world.redis.set(team_keys(team.team_id).tier_version, version)
        assert await world.cached(team).read() == (9_994_000_000, 7)
    await machine.restore()

    outcome = await catch_up(machine.settings, PATIENCE)

    replay = outcome.replay
    assert (replay.last, replay.new_records, replay.gap) == (machine.first + 5, 4, None)
    assert outcome.forgotten == (team.team_id,)
    async with world_of(machine.stack.servers) as world:
        assert await world.books.charges(team.team_id) == [COST] * 6
        assert await world.books.balance_usd(team.team_id) == Decimal(10) - 6 * COST
        await world.books.assert_they_add_up(team.team_id)
        assert await world.cached(other).read() == (10_000_000_000, 1)
        kept = await world.redis.mget(*team_keys(team.team_id))
        assert kept == [None] * len(kept)

    again = await catch_up(machine.settings, PATIENCE)
    assert (again.replay.new_records, again.forgotten) == (0, ())


def _again(team: CallingTeam, world: World) -> CallingTeam:
    """Return a team in a world of new connections."""
    return CallingTeam(team.team_id, team.price_id, world.edge, world.nats)


async def test_what_was_trimmed_and_is_not_in_the_database_is_told(machine: Machine) -> None:
    async with world_of(machine.stack.servers) as world:
        team = await world.open_team()
        await _call(world, team, 1)
    await machine.back_up()
    async with world_of(machine.stack.servers) as world:
        await _call(world, _again(team, world), 3)
        await world.nats.jetstream().purge_stream(INFERENCE_RECORDS.name, seq=machine.first + 3)
    await machine.restore()

    answer = await run_command("catch-up", "--json", "--stack", str(machine.stack.directory))

    assert answer.status == 1
    assert answer.json["replay"] == {
        "last": machine.first + 3,
        "new_records": 1,
        "gap": {"first": machine.first + 1, "last": machine.first + 2},
    }


async def test_without_settlement_it_says_that_nothing_moves(machine: Machine) -> None:
    async with world_of(machine.stack.servers) as world:
        await _call(world, await world.open_team(), 1)
    await machine.settlement.stop()
    with pytest.raises(CannotTellError, match="settlement stands still at sequence 0 of"):
        await catch_up(machine.settings, Patience(standstill_s=0.1))


async def test_an_empty_stream_is_caught_up_at_once(machine: Machine) -> None:
    outcome = await catch_up(machine.settings, PATIENCE)
    replay = outcome.replay
    assert (replay.last, replay.new_records, replay.gap) == (machine.first - 1, 0, None)
    assert outcome.forgotten == ()
