"""The front of the stream: messages that are given up, stored, settled, forgotten."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

import nats.js.errors
from integration.bus import TIMEOUT_S, nats_settings
from integration.services import environment
from integration.settlement.team import CallingTeam
from integration.settlement.world import World, world_of
from nats.aio.client import Client

from contracts.dead import DEAD_LETTERS
from contracts.inference import INFERENCE_RECORDS, InferenceRecord
from kit import postgres
from kit.bus.connection import connection
from kit.bus.consuming import Puller
from kit.bus.publishing import Publisher
from kit.clock import SystemClock
from kit.settings import load
from quotagate.stack import Servers
from quotagate.streams import make_streams
from settlement.domain.classification import classify
from settlement.handlers import given_up
from settlement.handlers.accounted import Accounted
from settlement.handlers.consume import durable
from settlement.handlers.dead_letters import CONSUMER, DeadLetters
from settlement.handlers.given_up import GivenUp
from settlement.handlers.trim import Trim
from settlement.handlers.trim_early import TrimEarly
from settlement.settings import Settings
from settlement.store.dead_letter_stream import DeadLetterStream
from settlement.store.record_stream import RecordStream
from settlement.store.records import Arrival, RecordStore

DAY_S = 86_400
EARLY_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The stream, whose records are delivered twice within moments and then given up."""

    servers: Servers
    world: World
    records: RecordStore
    stream: RecordStream
    puller: Puller
    given_up: GivenUp
    dead_letters: DeadLetters
    trim: Trim
    trim_early: TrimEarly

    async def resize(self, max_bytes: int) -> None:
        """Have the stream hold this much at most."""
        settings = nats_settings(self.servers, "operator")
        await make_streams(settings, record_max_bytes=max_bytes)

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

    async def handle_advisories(self) -> None:
        """Return once all that was given up is handled."""
        stop = asyncio.Event()
        running = asyncio.create_task(self.given_up.run(stop))
        async with asyncio.timeout(TIMEOUT_S):
            while not await given_up.nothing_given_up(self.stream):
                await asyncio.sleep(0.01)
        stop.set()
        await running

    async def store(self, team: CallingTeam, *written: InferenceRecord) -> list[int]:
        """Publish and store records; return their sequences."""
        sequences = await team.publish(*written)
        pairs = zip(written, sequences, strict=True)
        await self.records.insert([Arrival(r, n, classify(r, 10**9)) for r, n in pairs])
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


@asynccontextmanager
async def upkeep_of(servers: Servers) -> AsyncIterator[Upkeep]:
    """Begin with empty streams and without consumers, and leave them so."""
    settings = load(Settings, environment(servers, "settlement"))
    engine = postgres.connect(settings)
    async with world_of(servers) as world, connection(settings, "settlement") as client:
        await _clear(world.nats)
        records, stream = RecordStore(engine), RecordStream(client, CONSUMER)
        puller = Puller(client, replace(durable(settings), ack_wait_s=0.2, max_deliver=2))
        advisories = Puller(client, given_up.DURABLE)
        await puller.open()
        await advisories.open()
        clock = SystemClock()
        dead_letters = DeadLetters(Publisher(client), clock)
        accounted = Accounted(records, stream, DeadLetterStream(client, CONSUMER))
        upkeep = Upkeep(
            servers,
            world,
            records,
            stream,
            puller,
            GivenUp(advisories, stream, records, dead_letters),
            dead_letters,
            Trim(records, stream, clock, DAY_S),
            TrimEarly(records, stream, accounted, clock, EARLY_SHARE),
        )
        yield upkeep
        await _clear(world.nats)
        await upkeep.resize(INFERENCE_RECORDS.max_bytes)
    await engine.dispose()


async def _clear(operator: Client) -> None:
    jetstream = operator.jetstream()
    for stream, consumer in (
        (INFERENCE_RECORDS.name, CONSUMER),
        (DEAD_LETTERS.name, given_up.GIVEN_UP_CONSUMER),
    ):
        with suppress(nats.js.errors.NotFoundError):
            await jetstream.delete_consumer(stream, consumer)
        await jetstream.purge_stream(stream)
