"""A team that calls: its records, and a share of settlement that sees only them."""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
from integration.bus import TIMEOUT_S, Bus
from nats.aio.client import Client

from contracts.dead import DEAD_LETTERED, DEAD_LETTERS, DeadLetter
from contracts.inference import INFERENCE_RECORDED, InferenceRecord, Outcome, UsageSource
from contracts.usage import Usage
from kit.bus.consuming import Durable, Puller
from kit.bus.publishing import Publisher
from kit.clock import SystemClock
from kit.ids import new_id
from settlement.handlers.backlog import Backlog
from settlement.handlers.consume import Consume, durable
from settlement.handlers.dead_letters import DeadLetters
from settlement.settings import Settings
from settlement.store.record_stream import RecordStream
from settlement.store.records import RecordStore

_numbers = itertools.count(1)


class CallingTeam:
    """Makes and publishes records. One input token costs a millionth of the price's input."""

    def __init__(self, team_id: str, price_id: str, edge: Bus, client: Client) -> None:
        self.team_id = team_id
        self.price_id = price_id
        self._edge = edge
        self._client = client

    def record(self, **changes: Any) -> InferenceRecord:
        """Return a new record of a successful attempt with 1,000 input tokens, but for changes."""
        record = InferenceRecord(
            inference_id=new_id(),
            attempt_no=1,
            team_id=self.team_id,
            api_key_id="key",
            provider="fake",
            model_asked="model",
            model_sent="model",
            outcome=Outcome.SUCCEEDED,
            usage_source=UsageSource.PROVIDER,
            usage=Usage(input=1_000),
            price_id=self.price_id,
            started_at_us=1_700_000_000_000_000 + next(_numbers),
            finished_at_us=1_700_000_001_000_000,
        )
        return msgspec.structs.replace(record, **changes)

    async def publish(self, *records: InferenceRecord) -> list[int]:
        """Publish records, each as a message of its own; return their sequences."""
        return [
            await self._edge.announce(INFERENCE_RECORDED, self.team_id, record)
            for record in records
        ]

    async def publish_raw(self, payload: bytes) -> int:
        """Publish bytes where a record should be; return their sequence."""
        subject = INFERENCE_RECORDED.subject_for(self.team_id)
        return (await self._client.jetstream().publish(subject, payload)).seq

    async def dead_letters(self) -> list[DeadLetter]:
        """Return the dead letters made of this team's messages."""
        subject = INFERENCE_RECORDED.subject_for(self.team_id)
        jetstream = self._client.jetstream()
        state = (await jetstream.stream_info(DEAD_LETTERS.name)).state
        found = []
        for sequence in range(max(1, state.first_seq), state.last_seq + 1):
            message = await jetstream.get_msg(DEAD_LETTERS.name, sequence)
            if message.subject == DEAD_LETTERED.subject_for("settlement"):
                letter = msgspec.json.decode(message.data or b"", type=DeadLetter)
                if letter.subject == subject:
                    found.append(letter)
        return found


class Share:
    """A share of the stream, with a consumer of its own: the records of one team."""

    def __init__(
        self, team: CallingTeam, client: Client, settings: Settings, **consumer: Any
    ) -> None:
        self.durable: Durable = replace(
            durable(settings),
            name=f"settlement-{team.team_id}",
            subjects=(INFERENCE_RECORDED.subject_for(team.team_id),),
            **consumer,
        )
        self.stream = RecordStream(client, self.durable.name)
        self.backlog = Backlog()
        self._client = client
        self._settings = settings

    async def consume(self, records: RecordStore) -> Consume:
        """Return a worker on this share; several divide it."""
        puller = Puller(self._client, self.durable)
        await puller.open()
        dead_letters = DeadLetters(Publisher(self._client), SystemClock())
        return Consume(puller, records, dead_letters, self.backlog, self._settings)

    async def is_done(self) -> bool:
        """Return whether every message of the share is acknowledged or given up."""
        return (await self.stream.progress()).is_done

    async def redelivered(self) -> int:
        """Return how many of the messages in hand were delivered more than once."""
        info = await self._client.jetstream().consumer_info(self.durable.stream, self.durable.name)
        return info.num_redelivered or 0

    async def finish(self, workers: Sequence[Consume]) -> None:
        """Run the workers until the share is done, then stop them."""
        stop = asyncio.Event()
        running = [asyncio.create_task(worker.run(stop)) for worker in workers]
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while not await self.is_done():
                    await asyncio.sleep(0.01)
        finally:
            stop.set()
            await asyncio.gather(*running)
