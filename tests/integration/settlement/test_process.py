"""Settlement as a process: it boots, settles, is killed at any step, and leaves when told to."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from pathlib import Path

import pytest
from integration.bus import TIMEOUT_S
from integration.lost_streams import without
from integration.services import ServiceProcess, environment
from integration.settlement.books import Books
from integration.settlement.team import CallingTeam
from integration.settlement.wire import wire_to
from integration.settlement.world import World, world_of

from contracts.contract import Stream
from contracts.dead import DEAD_LETTERS
from contracts.inference import INFERENCE_RECORDED, INFERENCE_RECORDS
from quotagate.stack import Servers, Stack

QUICK = {
    "QUOTAGATE_ACK_WAIT_S": "1",
    "QUOTAGATE_RECONCILE_INTERVAL_S": "0.1",
    "QUOTAGATE_SETTLE_INTERVAL_S": "0.1",
    "QUOTAGATE_MEASURE_INTERVAL_S": "0.1",
    "QUOTAGATE_REDIS_TIMEOUT_MS": "5000",
}
NANO = 10**9

Make = Callable[..., ServiceProcess]


@pytest.fixture(scope="module")
def servers(second_stack: Stack) -> Servers:
    """Servers whose stream nobody else consumes."""
    return second_stack.servers


@pytest.fixture(scope="module")
async def world(servers: Servers) -> AsyncIterator[World]:
    async with world_of(servers) as world:
        yield world


@pytest.fixture
async def team(world: World) -> CallingTeam:
    return await world.open_team()


@pytest.fixture
async def make(servers: Servers, tmp_path: Path) -> AsyncIterator[Make]:
    """Makes processes with short intervals, and settings by variable."""
    made: list[ServiceProcess] = []

    def make(**settings: str) -> ServiceProcess:
        process = ServiceProcess(servers, "settlement", tmp_path, QUICK | settings)
        made.append(process)
        return process

    yield make
    for process in made:
        await process.stop()


async def _settled(books: Books, team: CallingTeam, records: int) -> None:
    """Return once that many records of the team are settled."""
    async with asyncio.timeout(TIMEOUT_S):
        while list((await books.states(team.team_id)).values()) != ["SETTLED"] * records:
            await asyncio.sleep(0.02)


async def _cached(world: World, team: CallingTeam, balance: int) -> None:
    """Return once the team's cached balance is this many nano-USD."""
    async with asyncio.timeout(TIMEOUT_S):
        while (await world.cached(team).read())[0] != balance:
            await asyncio.sleep(0.02)


async def test_it_boots_settles_and_leaves(make: Make, world: World, team: CallingTeam) -> None:
    process = make()
    await process.start_ready()
    await world.cached(team).write(10 * NANO, 1)
    await team.publish(team.record(), team.record(usage=None))
    async with asyncio.timeout(TIMEOUT_S):
        while sorted((await world.books.states(team.team_id)).values()) != [
            "SETTLED",
            "UNBILLABLE",
        ]:
            await asyncio.sleep(0.02)
    await _cached(world, team, 9_999_000_000)
    await process.becomes_more("quotagate_records_settled_total")
    process.signal(signal.SIGTERM)
    # uvicorn ends itself by the signal once all is closed.
    assert await process.ended() == -signal.SIGTERM
    assert "Application shutdown complete." in process.log()
    await world.books.assert_they_add_up(team.team_id)


@pytest.mark.parametrize("stream", [INFERENCE_RECORDS, DEAD_LETTERS], ids=lambda each: each.name)
async def test_a_stream_that_was_deleted_is_told_and_used_again_once_it_is_there(
    servers: Servers, make: Make, world: World, team: CallingTeam, stream: Stream
) -> None:
    process = make()
    await process.start_ready()
    unread = INFERENCE_RECORDED.subject_for(team.team_id)
    buried = 'quotagate_settlement_dead_letters_total{reason="unreadable"}'
    # The first message of each stream of records: both have the number 1.
    async with without(servers, INFERENCE_RECORDS):
        pass
    await world.nats.jetstream().publish(unread, b"no record")
    await process.becomes_more(buried)
    letters = await world.nats.jetstream().stream_info(DEAD_LETTERS.name)
    before = 0 if stream is DEAD_LETTERS else letters.state.messages - 1
    await team.publish(team.record())
    await _settled(world.books, team, 1)
    async with without(servers, stream):
        reasons = await process.becomes_unready("streams")
        assert reasons == {"streams": f"stream {stream.name}: NotFoundError"}
    await process.becomes_ready()
    await world.nats.jetstream().publish(unread, b"no record either")
    await process.becomes_more(buried, than=1)
    await team.publish(team.record(), team.record())
    await _settled(world.books, team, 3)
    letters = await world.nats.jetstream().stream_info(DEAD_LETTERS.name)
    assert letters.state.messages == before + (1 if stream is DEAD_LETTERS else 2)
    await world.books.assert_they_add_up(team.team_id)


async def test_killed_between_commit_and_acknowledgement(
    servers: Servers, make: Make, world: World, team: CallingTeam
) -> None:
    async with wire_to(servers.nats_url, b"$JS.ACK.") as (wire, url):
        process = make(QUOTAGATE_NATS_URL=url)
        await process.start_ready()
        await team.publish(team.record())
        async with asyncio.timeout(TIMEOUT_S):
            await wire.silent.wait()
        assert len(await world.books.states(team.team_id)) == 1
        await process.stop()
    successor = make()
    await successor.start_ready()
    await successor.becomes_more('quotagate_records_consumed_total{outcome="known"}')
    await _settled(world.books, team, 1)
    assert await world.books.charges(team.team_id) == [Decimal("0.001")]
    await world.books.assert_they_add_up(team.team_id)


async def test_killed_between_acknowledgement_and_settlement(
    servers: Servers, make: Make, world: World, team: CallingTeam
) -> None:
    database = servers.database_urls["quotagate_settlement"]
    async with wire_to(database, b"account_lock(") as (wire, url):
        process = make(QUOTAGATE_DATABASE_URL=url)
        await process.start_ready()
        await team.publish(team.record())
        async with asyncio.timeout(TIMEOUT_S):
            await wire.silent.wait()
        await process.stop()
    assert list((await world.books.states(team.team_id)).values()) == ["PENDING"]
    successor = make()
    await successor.start_ready()
    await _settled(world.books, team, 1)
    await world.books.assert_they_add_up(team.team_id)


async def test_killed_between_settlement_and_refresh(
    servers: Servers, make: Make, world: World, team: CallingTeam
) -> None:
    await world.cached(team).write(1, 1)
    async with wire_to(servers.redis_urls["settlement"], b"EVALSHA") as (wire, url):
        process = make(QUOTAGATE_REDIS_URL=url, QUOTAGATE_RECONCILE_INTERVAL_S="60")
        await process.start_ready()
        await team.publish(team.record())
        async with asyncio.timeout(TIMEOUT_S):
            await wire.silent.wait()
        await process.stop()
    assert list((await world.books.states(team.team_id)).values()) == ["SETTLED"]
    assert await world.cached(team).read() == (1, 1)
    successor = make()
    await successor.start_ready()
    await _cached(world, team, 9_999_000_000)
    await world.books.assert_they_add_up(team.team_id)


async def test_a_replay_of_the_whole_stream_charges_nothing_again(
    make: Make, world: World, team: CallingTeam
) -> None:
    process = make()
    await process.start_ready()
    await team.publish(*(team.record() for _ in range(5)))
    await _settled(world.books, team, 5)
    ledger = await world.books.ledger(team.team_id)
    # Without its consumer the service makes a new one, which begins at the beginning.
    await world.nats.jetstream().delete_consumer(INFERENCE_RECORDS.name, "settlement")
    await process.becomes_more('quotagate_records_consumed_total{outcome="known"}', than=4)
    await team.publish(team.record())
    await _settled(world.books, team, 6)
    assert (await world.books.ledger(team.team_id))[: len(ledger)] == ledger
    assert await world.books.charges(team.team_id) == [Decimal("0.001")] * 6
    await world.books.assert_they_add_up(team.team_id)


async def test_a_replica_that_was_frozen_with_a_batch_in_hand_doubles_nothing(
    servers: Servers, make: Make, world: World, team: CallingTeam
) -> None:
    # Frozen while it inserts: at the word that begins the statement.
    database = servers.database_urls["quotagate_settlement"]
    async with wire_to(database, b"INSERT INTO inference_record") as (wire, url):
        frozen = make(QUOTAGATE_DATABASE_URL=url, QUOTAGATE_DATABASE_TIMEOUT_S="1")
        await frozen.start_ready()
        await team.publish(*(team.record() for _ in range(3)))
        async with asyncio.timeout(TIMEOUT_S):
            await wire.silent.wait()
        frozen.signal(signal.SIGSTOP)
        other = make()
        await other.start_ready()
        await _settled(world.books, team, 3)
        frozen.signal(signal.SIGCONT)
        frozen.signal(signal.SIGTERM)
        await frozen.ended()
    assert await world.books.charges(team.team_id) == [Decimal("0.001")] * 3
    await world.books.assert_they_add_up(team.team_id)


async def test_it_is_not_ready_without_a_store_and_says_which(servers: Servers, make: Make) -> None:
    nowhere = "postgresql://nobody:nothing@127.0.0.1:9/nowhere"
    process = make(QUOTAGATE_DATABASE_URL=nowhere)
    await process.start()
    async with asyncio.timeout(TIMEOUT_S):
        while "postgres" not in (await process.problems()).get("service", ""):
            await asyncio.sleep(0.02)
    assert environment(servers, "settlement")["QUOTAGATE_NATS_PASSWORD"] not in process.log()
