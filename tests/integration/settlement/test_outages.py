"""A server goes away and comes back: nothing is lost, nothing doubled, nobody has to help."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from integration.bus import TIMEOUT_S
from integration.services import ServiceProcess
from integration.settlement.world import World, world_of

from quotagate.stack import Stack

SETTINGS = {
    "QUOTAGATE_ACK_WAIT_S": "2",
    "QUOTAGATE_RECONCILE_INTERVAL_S": "0.2",
    "QUOTAGATE_MEASURE_INTERVAL_S": "0.2",
    "QUOTAGATE_DATABASE_TIMEOUT_S": "1",
}
COST_NANO_USD = 1_000_000
LAG = "quotagate_settlement_lag_seconds"


@pytest.fixture
async def outer(second_stack: Stack) -> AsyncIterator[World]:
    async with world_of(second_stack.servers) as world:
        yield world


@pytest.fixture
async def process(second_stack: Stack, tmp_path: Path) -> AsyncIterator[ServiceProcess]:
    process = ServiceProcess(second_stack.servers, "settlement", tmp_path, SETTINGS)
    await process.start_ready()
    yield process
    await process.stop()


async def test_postgres(second_stack: Stack, process: ServiceProcess, outer: World) -> None:
    team = await outer.open_team()
    await asyncio.to_thread(second_stack.stop, "postgres")
    await process.becomes_unready("postgres")
    for _ in range(40):
        await team.publish(team.record(finished_at_us=None))
    # The lag is seen although the database can't be asked.
    await process.becomes_more(LAG)
    await asyncio.to_thread(second_stack.start, "postgres")
    await process.becomes_ready()
    async with asyncio.timeout(TIMEOUT_S):
        while list((await outer.books.states(team.team_id)).values()) != ["SETTLED"] * 40:
            await asyncio.sleep(0.05)
    await outer.books.assert_they_add_up(team.team_id)
    assert await team.dead_letters() == []


async def test_nats(second_stack: Stack, process: ServiceProcess, outer: World) -> None:
    team = await outer.open_team()
    await team.publish(team.record())
    await asyncio.to_thread(second_stack.stop, "nats")
    await process.becomes_unready("nats")
    await asyncio.to_thread(second_stack.start, "nats")
    await process.becomes_ready()
    async with world_of(second_stack.servers) as again:
        later = await again.open_team()
        await later.publish(later.record())
        async with asyncio.timeout(TIMEOUT_S):
            while not (
                set((await outer.books.states(team.team_id)).values()) == {"SETTLED"}
                and set((await outer.books.states(later.team_id)).values()) == {"SETTLED"}
            ):
                await asyncio.sleep(0.05)
    await outer.books.assert_they_add_up(team.team_id)


async def test_valkey(second_stack: Stack, process: ServiceProcess, outer: World) -> None:
    team = await outer.open_team()
    cached = outer.cached(team)
    await cached.write(10_000 * COST_NANO_USD, 1)
    await asyncio.to_thread(second_stack.signal, "valkey", "STOP")
    await process.becomes_unready("redis")
    await team.publish(team.record())
    async with asyncio.timeout(TIMEOUT_S):
        while list((await outer.books.states(team.team_id)).values()) != ["SETTLED"]:
            await asyncio.sleep(0.05)
    await asyncio.to_thread(second_stack.signal, "valkey", "CONT")
    await process.becomes_ready()
    async with asyncio.timeout(TIMEOUT_S):
        while (await cached.read())[0] != 9_999 * COST_NANO_USD:
            await asyncio.sleep(0.05)
