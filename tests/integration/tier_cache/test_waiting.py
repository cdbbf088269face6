"""A day and spend count what waits in the stream as well: each record once, wherever it is."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from integration.bus import Bus, bus_of, nats_settings
from integration.desk import Desk
from integration.services import environment
from integration.tables.rows import add_record, new_name
from nats.aio.client import Client
from nats.js.api import ConsumerConfig
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from contracts.inference import (
    INFERENCE_RECORDED,
    INFERENCE_RECORDS,
    InferenceRecord,
    Outcome,
    UsageSource,
)
from contracts.usage import Usage
from kit import postgres
from kit.bus.connection import connection
from kit.ids import new_id
from kit.settings import load
from quotagate.stack import Stack
from redis_scripts import DayUsage
from tier_cache.domain.days import Day, share_of
from tier_cache.domain.spends import owed_of
from tier_cache.errors import StreamUnavailableError
from tier_cache.settings import Settings
from tier_cache.store import rows
from tier_cache.store.database import Database
from tier_cache.store.waiting import WaitingRecords

DAY = Day(20_000 * 86_400_000_000, 20_001 * 86_400_000_000)


@dataclass(frozen=True, slots=True)
class World:
    """Servers of these tests alone, so that no settlement touches what waits."""

    desk: Desk
    edge: Bus
    operator: Client
    database: Database
    waiting: WaitingRecords
    settlement: AsyncEngine

    async def hand_off(
        self,
        team_id: str,
        *,
        tokens: int,
        began_us: int = DAY.start_us,
        inference_id: str = "",
        **more: Any,
    ) -> str:
        """Publish a record as an edge would; return its inference's id."""
        facts: dict[str, Any] = {"api_key_id": "k", "usage": Usage(input=tokens)} | more
        record = InferenceRecord(
            inference_id=inference_id or new_id(),
            attempt_no=1,
            team_id=team_id,
            provider="fake",
            model_asked="m",
            outcome=Outcome.SUCCEEDED,
            usage_source=UsageSource.PROVIDER,
            started_at_us=began_us,
            **facts,
        )
        await self.edge.announce(INFERENCE_RECORDED, team_id, record)
        return record.inference_id

    async def store(
        self, team_id: str, inference_id: str, *, tokens: int, state: str, **more: Any
    ) -> None:
        """Store a record as settlement would."""
        held = {"held_reason": "no_price"} if state == "HELD" else {}
        await add_record(
            self.settlement,
            team_id,
            inference_id=inference_id,
            started_at=rows.instant(DAY.start_us),
            input_tokens=tokens,
            state=state,
            **held,
            **more,
        )

    async def used(self, team_id: str) -> tuple[int, int]:
        """Return the requests and tokens of the day."""
        waiting = await self.waiting.of(team_id)
        shares = [share for each in waiting if (share := share_of(each, DAY)) is not None]
        used: DayUsage | None = await self.database.day(team_id, DAY, shares)
        assert used is not None
        return used.requests, used.tokens

    async def spent_usd(self, team_id: str, key_id: str | None = None) -> Decimal:
        """Return what was spent on the day and isn't settled."""
        waiting = await self.waiting.of(team_id)
        owed = [one for each in waiting if (one := owed_of(each, key_id, DAY)) is not None]
        spent = await self.database.spend(team_id, key_id, DAY, owed)
        assert spent is not None
        assert spent.settled_usd == 0
        return spent.pending_usd


@pytest.fixture(scope="module")
async def world(module_servers: Stack) -> AsyncIterator[World]:
    servers = module_servers.servers
    url = make_url(servers.database_urls["quotagate_settlement"])
    settlement = create_async_engine(url.set(drivername="postgresql+asyncpg"))
    engine = postgres.connect(load(Settings, environment(servers, "tier-cache")))
    desk = Desk(servers)
    async with contextlib.AsyncExitStack() as stack:
        for close in (settlement.dispose, engine.dispose, desk.close):
            stack.push_async_callback(close)
        edge = await stack.enter_async_context(bus_of(servers, "edge-proxy"))
        operator, tier_cache = [
            await stack.enter_async_context(connection(nats_settings(servers, user), "test"))
            for user in ("operator", "tier-cache")
        ]
        waiting = WaitingRecords(tier_cache)
        yield World(desk, edge, operator, Database(engine), waiting, settlement)


@pytest.mark.parametrize("state", ["PENDING", "UNBILLABLE", "HELD"])
async def test_a_stored_record_counts_whatever_its_state(world: World, state: str) -> None:
    team_id = await world.desk.open_team()
    await world.store(team_id, new_id(), tokens=7, state=state)
    assert await world.used(team_id) == (1, 7)


async def test_what_waits_counts_once_stored_or_not(world: World) -> None:
    team_id, other = await world.desk.open_team(), await world.desk.open_team()
    stored = await world.hand_off(team_id, tokens=1)
    await world.store(team_id, stored, tokens=1, state="PENDING")
    await world.hand_off(team_id, tokens=20)
    twice = await world.hand_off(team_id, tokens=300)
    await world.hand_off(team_id, tokens=300, inference_id=twice)
    await world.hand_off(team_id, tokens=4_000, began_us=DAY.end_us)
    await world.hand_off(other, tokens=50_000)
    subject = INFERENCE_RECORDED.subject_for(team_id)
    await world.operator.jetstream().publish(subject, b"no record")
    assert await world.used(team_id) == (3, 321)
    assert await world.used(other) == (1, 50_000)


async def test_what_waits_is_spent_once_stored_or_not_at_its_pinned_price(world: World) -> None:
    team_id, other = await world.desk.open_team(), await world.desk.open_team()
    pinned: dict[str, Any] = {
        "price_id": await world.desk.add_price(new_name("m"), input="1000000")
    }
    cheap: dict[str, Any] = {
        "price_id": await world.desk.add_price(new_name("m"), input="0.000001")
    }
    stored = await world.hand_off(team_id, tokens=1, **pinned)
    await world.store(team_id, stored, tokens=1, state="PENDING", api_key_id="k", **pinned)
    await world.hand_off(team_id, tokens=20, **pinned)
    twice = await world.hand_off(team_id, tokens=300, **pinned, api_key_id="k2")
    await world.hand_off(team_id, tokens=300, inference_id=twice, **pinned, api_key_id="k2")
    await world.hand_off(team_id, tokens=7, **cheap)
    yesterday: dict[str, Any] = {"began_us": DAY.start_us - 1}
    await world.hand_off(team_id, tokens=4_000, **yesterday, finished_at_us=DAY.start_us, **pinned)
    await world.hand_off(team_id, tokens=50_000, **yesterday, **pinned)
    await world.hand_off(team_id, tokens=50_000, began_us=DAY.end_us, **pinned)
    await world.hand_off(team_id, tokens=50_000, price_id="no price at all")
    await world.hand_off(team_id, tokens=50_000)
    await world.hand_off(team_id, tokens=0, usage=None, **pinned)
    await world.hand_off(other, tokens=600_000, **pinned)
    settled = await world.hand_off(team_id, tokens=50_000, **pinned)
    await world.store(team_id, settled, tokens=50_000, state="UNBILLABLE", api_key_id="k", **pinned)
    assert await world.spent_usd(team_id) == Decimal("4321.000000000007")
    assert await world.spent_usd(team_id, "k2") == 300
    assert await world.spent_usd(team_id, "k3") == 0
    assert await world.spent_usd(other) == 600_000


async def test_every_class_that_waits_has_its_price(world: World) -> None:
    team_id = await world.desk.open_team()
    names = Usage.__struct_fields__
    prices = {name: str(10**place) for place, name in enumerate(names)}
    price_id = await world.desk.add_price(new_name("m"), **prices)
    usage = Usage(**{name: place + 2 for place, name in enumerate(names)})
    await world.hand_off(team_id, tokens=0, usage=usage, price_id=price_id)
    expected = sum(Decimal(prices[name]) * getattr(usage, name) for name in names) / Decimal(
        1_000_000
    )
    assert await world.spent_usd(team_id) == expected


async def test_a_message_in_anothers_name_counts_for_nobody(world: World) -> None:
    team_id, other = await world.desk.open_team(), await world.desk.open_team()
    await world.hand_off(team_id, tokens=5)
    found = await world.operator.jetstream().get_last_msg(
        INFERENCE_RECORDS.name, INFERENCE_RECORDED.subject_for(team_id)
    )
    subject = INFERENCE_RECORDED.subject_for(other)
    await world.operator.jetstream().publish(subject, found.data or b"")
    assert await world.used(other) == (0, 0)
    assert await world.used(team_id) == (1, 5)


async def test_what_settlement_has_acknowledged_is_not_read_again(world: World) -> None:
    team_id = await world.desk.open_team()
    # Acknowledged, and not stored here: only so can it be seen that nobody reads it.
    await world.hand_off(team_id, tokens=1)
    jetstream = world.operator.jetstream()
    subscription = await jetstream.pull_subscribe(
        "",
        durable=INFERENCE_RECORDS.owner,
        stream=INFERENCE_RECORDS.name,
        config=ConsumerConfig(ack_wait=30),
    )
    try:
        for message in await subscription.fetch(100, timeout=5):
            await message.ack_sync()
        await world.hand_off(team_id, tokens=20)
        assert await world.used(team_id) == (1, 20)
    finally:
        await jetstream.delete_consumer(INFERENCE_RECORDS.name, INFERENCE_RECORDS.owner)


async def test_without_the_stream_there_is_an_error_and_no_count(
    world: World, module_servers: Stack
) -> None:
    team_id = await world.desk.open_team()
    await asyncio.to_thread(module_servers.stop, "nats")
    try:
        with pytest.raises(StreamUnavailableError):
            await world.waiting.of(team_id)
    finally:
        await asyncio.to_thread(module_servers.start, "nats")
