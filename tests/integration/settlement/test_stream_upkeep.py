"""What happens at the front of the stream: messages given up are kept, settled ones go in time."""

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest
from integration.bus import TIMEOUT_S
from integration.services import environment
from integration.settlement.team import CallingTeam
from integration.settlement.world import World, world_of
from nats.aio.client import Client

from contracts.contract import encode
from kit import postgres
from kit.bus.connection import connection
from kit.bus.consuming import Puller
from kit.bus.publishing import Publisher
from kit.clock import SystemClock
from kit.settings import load
from quotagate.stack import Stack
from settlement.domain.classification import Pending
from settlement.handlers import given_up
from settlement.handlers.consume import durable
from settlement.handlers.dead_letters import CONSUMER, DeadLetters
from settlement.handlers.given_up import GivenUp
from settlement.handlers.trim import Trim
from settlement.settings import Settings
from settlement.store.record_stream import RecordStream
from settlement.store.records import Arrival, RecordStore

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Upkeep:
    """A stream of its own, whose records are delivered twice within moments and then given up."""

    world: World
    client: Client
    records: RecordStore
    stream: RecordStream
    puller: Puller
    given_up: GivenUp
    trim: Trim

    async def deliver(self, count: int) -> None:
        """Fetch that many records and acknowledge them; fewer is an error."""
        messages = await self.puller.fetch(count, TIMEOUT_S)
        assert len(messages) == count
        for message in messages:
            await self.puller.ack(message)

    async def exhaust(self) -> None:
        """Fetch without acknowledging until the server gives the messages up."""
        async with asyncio.timeout(TIMEOUT_S):
            while not (await self.stream.progress()).is_done:
                await self.puller.fetch(10, 0.1)

    async def store(self, team: CallingTeam, count: int) -> list[int]:
        """Publish and store that many records; return their sequences."""
        written = [team.record() for _ in range(count)]
        sequences = await team.publish(*written)
        pairs = zip(written, sequences, strict=True)
        await self.records.insert([Arrival(record, n, Pending()) for record, n in pairs])
        return sequences

    async def settled_ago(self, days: int, *sequences: int) -> None:
        """Have records settled that long ago."""
        await self.world.books.execute(
            "UPDATE inference_record SET state = 'SETTLED',"
            " settled_at = now() - make_interval(days => :days)"
            " WHERE stream_sequence = ANY (:sequences)",
            days=days,
            sequences=sequences,
        )

    async def first(self) -> int:
        """Return the first sequence that the stream still holds."""
        return (await self.stream.extent()).first


@pytest.fixture
async def upkeep(own_servers: Stack) -> AsyncIterator[Upkeep]:
    servers = own_servers.servers
    settings = load(Settings, environment(servers, "settlement"))
    engine = postgres.connect(settings)
    async with world_of(servers) as world, connection(settings, "settlement") as client:
        records, stream = RecordStore(engine), RecordStream(client, CONSUMER)
        puller = Puller(client, replace(durable(settings), ack_wait_s=0.2, max_deliver=2))
        advisories = Puller(client, given_up.DURABLE)
        await puller.open()
        await advisories.open()
        clock = SystemClock()
        dead_letters = DeadLetters(Publisher(client), clock)
        yield Upkeep(
            world,
            client,
            records,
            stream,
            puller,
            GivenUp(advisories, stream, records, dead_letters),
            Trim(records, stream, clock, DAY_S),
        )
    await engine.dispose()


async def _while_advisories_are_handled(upkeep: Upkeep) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(upkeep.given_up.run(stop))
    async with asyncio.timeout(TIMEOUT_S):
        while not (
            await upkeep.stream.progress_of(given_up.DURABLE.stream, given_up.GIVEN_UP_CONSUMER)
        ).is_done:
            await asyncio.sleep(0.01)
    stop.set()
    await running


async def test_what_the_server_gave_up_becomes_a_dead_letter_and_stays_until_then(
    upkeep: Upkeep,
) -> None:
    team = await upkeep.world.open_team()
    lost, known = team.record(), team.record()
    await team.publish(lost)
    (stored,) = await team.publish(known)
    await upkeep.records.insert([Arrival(known, stored, Pending())])
    await upkeep.exhaust()
    # Something later that is old enough to go, and would take the lost one along.
    (later,) = await upkeep.store(team, 1)
    await upkeep.deliver(1)
    await upkeep.settled_ago(2, stored, later)
    await upkeep.trim.tick()
    assert await upkeep.first() == 1

    await _while_advisories_are_handled(upkeep)
    (letter,) = await team.dead_letters()
    assert letter.reason == "undelivered: delivered 2 times and never acknowledged"
    assert base64.b64decode(letter.payload_base64) == encode(lost)

    await upkeep.trim.tick()
    assert await upkeep.first() == later + 1


async def test_only_what_was_settled_before_the_window_is_removed(upkeep: Upkeep) -> None:
    team = await upkeep.world.open_team()
    sequences = await upkeep.store(team, 6)
    await upkeep.trim.tick()
    assert await upkeep.first() == sequences[0]

    await upkeep.deliver(4)
    await upkeep.trim.tick()
    assert await upkeep.first() == sequences[0]

    await upkeep.settled_ago(0, sequences[2])
    await upkeep.settled_ago(2, *sequences[:2], sequences[3], sequences[4])
    await upkeep.trim.tick()
    assert await upkeep.first() == sequences[2]

    await upkeep.settled_ago(2, sequences[2])
    await upkeep.trim.tick()
    # The fifth is settled, but the stream doesn't know yet that it was consumed.
    assert await upkeep.first() == sequences[4]

    await upkeep.deliver(2)
    await upkeep.trim.tick()
    # The sixth waits for its charge.
    assert await upkeep.first() == sequences[5]
