"""The relay loses nothing and doubles nothing: killed, cut off from NATS, or beside another."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from integration.bus import nats_settings
from integration.control_plane.opened import credit, open_team, told, was_published
from integration.control_plane.process import ControlPlane, running
from integration.control_plane.stream import published
from integration.tables.rows import new_name
from nats.aio.client import Client
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from control_plane.domain.changes import Change
from control_plane.handlers.relay import Relay
from control_plane.store import outbox
from control_plane.store.database import Database
from kit.bus.connection import connection
from kit.bus.publishing import Publisher
from quotagate.stack import PortPolicy, Servers, Stack

# Where the next run looks for what a killed one left.
STACKS = Path(__file__).parents[3] / "build" / "test-stacks"
NOWHERE = {"QUOTAGATE_NATS_URL": "nats://127.0.0.1:1"}


def adjusted(team_id: str) -> str:
    return f"quota.v1.control.account.adjusted.{team_id}"


async def versions(servers: Servers, team_id: str) -> list[int]:
    return [event.message["version"] for event in await published(servers, adjusted(team_id))]


@pytest.fixture(scope="module")
def own() -> Iterator[Stack]:
    """Servers of this module, to stop and freeze; each test leaves them as they were."""
    stack = Stack(STACKS / f"{os.getpid()}-relay", PortPolicy.FREE)
    try:
        stack.up(services=())
        yield stack
    finally:
        stack.down()


@pytest.fixture
async def own_control_plane(own: Stack, tmp_path: Path) -> AsyncIterator[ControlPlane]:
    async with running(own.servers, tmp_path) as process:
        await process.becomes_ready()
        yield process


async def test_without_nats_changes_are_committed_and_published_when_it_is_back(
    own: Stack, own_control_plane: ControlPlane
) -> None:
    await asyncio.to_thread(own.stop, "nats")
    async with own_control_plane.operator() as operator:
        team_id = await open_team(operator)
        entries = [await credit(operator, team_id) for _ in range(3)]
        event = await told(operator.get(f"/events/{entries[0]['event_id']}"))
        assert event["published_at"] is None
        assert await own_control_plane.problems() == {}
        depth = "quotagate_control_plane_outbox_depth"
        async with asyncio.timeout(15):
            while await own_control_plane.metric(depth) < 3:
                await asyncio.sleep(0.02)
        await asyncio.to_thread(own.start, "nats")
        for entry in entries:
            await was_published(operator, entry["event_id"])
    assert await versions(own.servers, team_id) == [1, 2, 3]


async def test_killed_before_anything_was_sent(own: Stack, own_control_plane: ControlPlane) -> None:
    await asyncio.to_thread(own.stop, "nats")
    async with own_control_plane.operator() as operator:
        team_id = await open_team(operator)
        await credit(operator, team_id)
        last = await credit(operator, team_id)
    own_control_plane.signal(signal.SIGKILL)
    await own_control_plane.ended()
    await asyncio.to_thread(own.start, "nats")
    await own_control_plane.start_ready()
    async with own_control_plane.operator() as operator:
        await was_published(operator, last["event_id"])
    assert await versions(own.servers, team_id) == [1, 2]


async def test_killed_between_the_publish_and_its_ack(
    own: Stack, own_control_plane: ControlPlane
) -> None:
    await asyncio.to_thread(own.signal, "nats", "STOP")
    async with own_control_plane.operator() as operator:
        team_id = await open_team(operator)
        entry = await credit(operator, team_id)
        # The relay holds its row exactly while it waits for acks.
        engine = create_async_engine(
            own.servers.database_url.replace("postgresql:", "postgresql+asyncpg:")
        )
        async with asyncio.timeout(15):
            while await free_rows(engine, entry["event_id"]):
                await asyncio.sleep(0.02)
        await engine.dispose()
    own_control_plane.signal(signal.SIGKILL)
    await own_control_plane.ended()
    await asyncio.to_thread(own.signal, "nats", "CONT")
    # The frozen server now reads what the dead process had sent.
    async with asyncio.timeout(15):
        while not await versions(own.servers, team_id):
            await asyncio.sleep(0.02)
    await own_control_plane.start_ready()
    async with own_control_plane.operator() as operator:
        await was_published(operator, entry["event_id"])
    assert await versions(own.servers, team_id) == [1]


async def free_rows(engine: AsyncEngine, event_id: str) -> int:
    async with engine.begin() as connection:
        rows = await connection.execute(
            text("SELECT id FROM outbox WHERE message_id = :id FOR UPDATE SKIP LOCKED"),
            {"id": event_id},
        )
        return len(rows.all())


class Connected:
    """A connection for a relay of the test's own."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def client(self) -> Client:
        return self._client


@contextlib.asynccontextmanager
async def relay_of(servers: Servers) -> AsyncIterator[tuple[Relay, Database, Client]]:
    url = servers.database_urls["quotagate_control_plane"]
    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
    async with connection(nats_settings(servers, "control-plane"), "a relay") as client:
        database = Database(engine)
        yield Relay(database, Connected(client), 0.1, 5), database, client
    await engine.dispose()


async def test_published_but_not_marked_is_published_again_and_dropped(
    own: Stack,
) -> None:
    servers, team_id = own.servers, new_name("team")
    async with relay_of(servers) as (relay, database, client):
        async with database.changing() as session:
            await outbox.append(session, Change(adjusted(team_id), b'{"version": 1}'))
        with contextlib.suppress(ZeroDivisionError):
            async with database.changing() as session:
                (row,) = await outbox.take(session, 10)
                await Publisher(client).publish_raw(
                    row.subject, row.payload, row.message_id, "CONTROL_EVENTS", 5
                )
                raise ZeroDivisionError  # the crash
        assert await versions(servers, team_id) == [1]
        assert await relay.round() == 1
        assert await relay.round() == 0
    assert await versions(servers, team_id) == [1]


async def test_several_relays_keep_each_subjects_order(own: Stack) -> None:
    servers = own.servers
    team_ids = [new_name("team") for _ in range(5)]
    async with contextlib.AsyncExitStack() as stack:
        relays = [await stack.enter_async_context(relay_of(servers)) for _ in range(3)]
        stop = asyncio.Event()
        running_relays = [asyncio.create_task(relay.run(stop)) for relay, _, _ in relays]
        database = relays[0][1]
        for version in range(1, 21):
            for team_id in team_ids:
                async with database.changing() as session:
                    payload = f'{{"version": {version}}}'.encode()
                    await outbox.append(session, Change(adjusted(team_id), payload))
        async with asyncio.timeout(30):
            while (await depth(database)).messages:
                await asyncio.sleep(0.05)
        stop.set()
        await asyncio.gather(*running_relays)
    for team_id in team_ids:
        assert await versions(servers, team_id) == list(range(1, 21))


async def depth(database: Database) -> outbox.Depth:
    async with database.reading() as session:
        return await outbox.depth(session)


async def test_while_one_relay_holds_the_oldest_event_nobody_overtakes_it(
    own: Stack,
) -> None:
    servers, team_id = own.servers, new_name("team")
    async with relay_of(servers) as (relay, database, _):
        for version in (1, 2):
            async with database.changing() as session:
                payload = f'{{"version": {version}}}'.encode()
                await outbox.append(session, Change(adjusted(team_id), payload))
        async with database.changing() as held:
            assert len(await outbox.take(held, 10)) == 1
            assert await relay.round() == 0
        assert [await relay.round() for _ in range(3)] == [1, 1, 0]
    assert await versions(servers, team_id) == [1, 2]


async def test_a_replica_that_reaches_nats_publishes_for_one_that_does_not(
    servers: Servers, tmp_path: Path
) -> None:
    async with running(servers, tmp_path, NOWHERE) as cut_off, cut_off.operator() as operator:
        async with asyncio.timeout(15):
            while (await operator.get("/tiers")).status_code != httpx.codes.OK:
                await asyncio.sleep(0.02)
        assert "nats" in await cut_off.becomes_unready("nats")
        team_id = await open_team(operator)
        entry = await credit(operator, team_id)
        # Its poll is an hour away: only the notification of the commit can wake it.
        patient = {"QUOTAGATE_OUTBOX_POLL_S": "3600"}
        async with running(servers, tmp_path, patient) as other:
            await other.becomes_ready()
            await was_published(operator, entry["event_id"])
            for _ in range(3):
                entry = await credit(operator, team_id)
                await was_published(operator, entry["event_id"])
    assert await versions(servers, team_id) == [1, 2, 3, 4]
