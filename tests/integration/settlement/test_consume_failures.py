"""What goes wrong with one record stops no other, and what is slow isn't done twice."""

import asyncio
import base64

import pytest
from integration.bus import TIMEOUT_S
from integration.settlement.books import Books
from integration.settlement.stores import BreakingStore, FailingStore, RefusingStore, SlowStore
from integration.settlement.team import CallingTeam, Share
from nats.aio.client import Client
from sqlalchemy.ext.asyncio import AsyncEngine

from contracts.contract import encode
from settlement.domain.classification import Pending
from settlement.errors import RowRefusedError
from settlement.settings import Settings
from settlement.store.records import Arrival


async def test_a_row_that_the_database_refuses_fails_no_other(
    team: CallingTeam, client: Client, settings: Settings, engine: AsyncEngine, books: Books
) -> None:
    written = [team.record() for _ in range(10)]
    await team.publish(*written)
    refused = {written[2].inference_id, written[9].inference_id}
    share = Share(team, client, settings)
    await share.finish([await share.consume(RefusingStore(engine, refused))])
    stored = {inference_id for inference_id, _ in await books.states(team.team_id)}
    assert stored == {record.inference_id for record in written} - refused
    letters = await team.dead_letters()
    assert {letter.reason for letter in letters} == {
        "refused: postgres refused with SQLSTATE 23514"
    }
    kept = sorted(base64.b64decode(letter.payload_base64) for letter in letters)
    assert kept == sorted([encode(written[2]), encode(written[9])])


async def test_a_refused_batch_leaves_nothing(
    team: CallingTeam, engine: AsyncEngine, books: Books
) -> None:
    good, bad = team.record(), team.record()
    store = RefusingStore(engine, {bad.inference_id})
    with pytest.raises(RowRefusedError):
        await store.insert([Arrival(good, 1, Pending()), Arrival(bad, 2, Pending())])
    assert await books.states(team.team_id) == {}


async def test_a_batch_longer_than_the_ack_wait_is_delivered_once(
    team: CallingTeam, client: Client, settings: Settings, engine: AsyncEngine, books: Books
) -> None:
    await team.publish(*(team.record() for _ in range(3)))
    quick = settings.model_copy(update={"ack_wait_s": 1.0})
    share = Share(team, client, quick)
    store = SlowStore(engine)
    stop = asyncio.Event()
    workers = [await share.consume(store) for _ in range(2)]
    running = [asyncio.create_task(worker.run(stop)) for worker in workers]
    # The passing of time is what this is about: three times the ack wait.
    await asyncio.sleep(3 * quick.ack_wait_s)
    redelivered = await share.redelivered()
    calls = store.calls
    store.go_on.set()
    async with asyncio.timeout(TIMEOUT_S):
        while not await share.is_done():
            await asyncio.sleep(0.01)
    stop.set()
    await asyncio.gather(*running)
    assert redelivered == 0
    assert store.calls == calls
    assert len(await books.states(team.team_id)) == 3


async def test_an_outage_of_the_database_uses_up_no_deliveries(
    team: CallingTeam, client: Client, settings: Settings, engine: AsyncEngine, books: Books
) -> None:
    await team.publish(team.record())
    share = Share(team, client, settings, max_deliver=1)
    store = FailingStore(engine, failures=2)
    await share.finish([await share.consume(store)])
    assert store.failures == 0
    assert list((await books.states(team.team_id)).values()) == ["PENDING"]


async def test_told_to_stop_during_an_outage_it_hands_its_records_to_another_replica(
    team: CallingTeam, client: Client, settings: Settings, engine: AsyncEngine, books: Books
) -> None:
    await team.publish(team.record())
    share = Share(team, client, settings)
    store = FailingStore(engine, failures=1_000_000)
    stop = asyncio.Event()
    running = asyncio.create_task((await share.consume(store)).run(stop))
    async with asyncio.timeout(TIMEOUT_S):
        while store.failures == 1_000_000:
            await asyncio.sleep(0.01)
        stop.set()
        await running
    # Long before the ack wait, which no test waits out.
    await share.finish([await share.consume(FailingStore(engine, failures=0))])
    assert list((await books.states(team.team_id)).values()) == ["PENDING"]


async def test_a_record_that_breaks_its_batch_is_given_up_alone(
    team: CallingTeam, client: Client, settings: Settings, engine: AsyncEngine, books: Books
) -> None:
    written = [team.record() for _ in range(5)]
    await team.publish(*written)
    share = Share(team, client, settings, ack_wait_s=0.2, max_deliver=4)
    breaker = written[1].inference_id
    await share.finish([await share.consume(BreakingStore(engine, breaker))])
    stored = {inference_id for inference_id, _ in await books.states(team.team_id)}
    assert stored == {record.inference_id for record in written} - {breaker}
