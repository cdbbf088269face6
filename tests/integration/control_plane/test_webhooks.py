"""Webhooks: each event arrives, signed, and again only after a failure; none is lost."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from integration.control_plane.opened import told
from integration.control_plane.process import running
from integration.control_plane.receiver import SECRET, WebhookReceiver, receiving
from integration.tables.rows import new_name
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from control_plane.clients.receiver import Receiver
from control_plane.domain.webhooks import read_secrets
from control_plane.handlers.deliver import Deliver, Terms
from control_plane.store.database import Database
from quotagate.stack import Servers

PAYLOAD = b'{"team_id":"t","spent_usd":"1"}'
TIMEOUT_S = 0.5


@pytest.fixture
async def receiver() -> AsyncIterator[WebhookReceiver]:
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
async def database(servers: Servers) -> AsyncIterator[Database]:
    url = make_url(servers.database_urls["quotagate_control_plane"])
    engine = create_async_engine(url.set(drivername="postgresql+asyncpg"))
    yield Database(engine)
    await engine.dispose()


@pytest.fixture(autouse=True)
async def nothing_else(owner: AsyncEngine) -> None:
    """Leave what other tests owe alone."""
    async with owner.begin() as connection:
        await connection.execute(text("DELETE FROM webhook_delivery"))


@pytest.fixture
async def deliver(database: Database, receiver: WebhookReceiver) -> AsyncIterator[Deliver]:
    client = Receiver(f"{receiver.url}/hook?a=1", TIMEOUT_S)
    yield Deliver(database, client, terms())
    await client.close()


def terms(patience_s: float = 3_600) -> Terms:
    return Terms(read_secrets(SECRET), TIMEOUT_S, timedelta(seconds=patience_s))


async def owe(settlement: AsyncEngine, count: int = 1) -> list[str]:
    """Owe events, as settlement does; return their ids."""
    ids = [new_name("event") for _ in range(count)]
    async with settlement.begin() as connection:
        for message_id in ids:
            await connection.execute(
                text(
                    "INSERT INTO webhook_delivery (message_id, kind, payload)"
                    " VALUES (:id, 'spend.threshold', :payload)"
                ),
                {"id": message_id, "payload": PAYLOAD},
            )
    return ids


async def make_due(owner: AsyncEngine) -> None:
    """Let the pauses and leases pass."""
    async with owner.begin() as connection:
        await connection.execute(text("UPDATE webhook_delivery SET next_attempt_at = now()"))


async def test_an_event_is_sent_once_and_the_official_library_takes_it(
    deliver: Deliver,
    receiver: WebhookReceiver,
    settlement: AsyncEngine,
    owner: AsyncEngine,
    operator: httpx.AsyncClient,
) -> None:
    [message_id] = await owe(settlement)
    assert await deliver.round() == 1
    await make_due(owner)
    assert await deliver.round() == 0
    [got] = receiver.received
    assert got.path == "/hook?a=1"
    verified = got.verified()
    assert (verified["type"], verified["data"]) == ("spend.threshold", json.loads(PAYLOAD))
    delivery = await told(operator.get(f"/webhook-deliveries/{message_id}"))
    assert (delivery["attempts"], delivery["last_status"]) == (1, 204)
    assert delivery["delivered_at"] is not None
    assert (delivery["next_attempt_at"], delivery["given_up_at"]) == (None, None)


@pytest.mark.parametrize("status", [500, 404, 302, None], ids=["500", "404", "302", "silence"])
async def test_what_was_not_taken_is_sent_again_the_same(
    deliver: Deliver,
    receiver: WebhookReceiver,
    settlement: AsyncEngine,
    owner: AsyncEngine,
    operator: httpx.AsyncClient,
    status: int | None,
) -> None:
    [message_id] = await owe(settlement)
    receiver.answer = lambda _: status
    assert await deliver.round() == 1
    delivery = await told(operator.get(f"/webhook-deliveries/{message_id}"))
    assert (delivery["attempts"], delivery["last_status"]) == (1, status)
    assert delivery["last_error"] == (None if status else "timeout")
    assert (delivery["delivered_at"], delivery["given_up_at"]) == (None, None)
    # Not before its pause is over.
    assert await deliver.round() == 0
    await make_due(owner)
    receiver.answer = lambda _: 200
    assert await deliver.round() == 1
    first, second = receiver.received
    assert (first.message_id, first.body) == (second.message_id, second.body)
    assert second.verified()


async def test_nobody_there_is_a_failure_like_another(
    database: Database, settlement: AsyncEngine, operator: httpx.AsyncClient
) -> None:
    [message_id] = await owe(settlement)
    client = Receiver("http://127.0.0.1:1/", TIMEOUT_S)
    await Deliver(database, client, terms()).round()
    await client.close()
    delivery = await told(operator.get(f"/webhook-deliveries/{message_id}"))
    assert (delivery["last_status"], delivery["last_error"]) == (None, "unreachable")
    owed = await told(operator.get("/webhook-deliveries", params={"owed": True}))
    assert [item["message_id"] for item in owed["items"]] == [message_id]


@pytest.mark.parametrize(
    ("status", "patience_s"),
    [pytest.param(410, 3_600, id="gone"), pytest.param(503, 0, id="out of patience")],
)
async def test_what_nobody_will_take_is_given_up_and_can_be_seen(
    database: Database,
    receiver: WebhookReceiver,
    settlement: AsyncEngine,
    owner: AsyncEngine,
    operator: httpx.AsyncClient,
    status: int,
    patience_s: float,
) -> None:
    [message_id] = await owe(settlement)
    receiver.answer = lambda _: status
    client = Receiver(receiver.url, TIMEOUT_S)
    deliver = Deliver(database, client, terms(patience_s))
    await deliver.round()
    await make_due(owner)
    assert await deliver.round() == 0
    await client.close()
    [item] = (await told(operator.get("/webhook-deliveries", params={"owed": False})))["items"]
    assert (item["message_id"], item["last_status"]) == (message_id, status)
    assert item["given_up_at"] is not None


async def test_three_senders_share_the_work(
    database: Database, receiver: WebhookReceiver, settlement: AsyncEngine
) -> None:
    ids = await owe(settlement, 50)
    client = Receiver(receiver.url, 10)
    senders = [Deliver(database, client, terms()) for _ in range(3)]
    while any(await asyncio.gather(*(sender.round() for sender in senders))):
        pass
    await client.close()
    assert sorted(got.message_id for got in receiver.received) == sorted(ids)


async def test_a_control_plane_that_is_killed_while_it_sends_is_followed_by_another(
    servers: Servers,
    receiver: WebhookReceiver,
    settlement: AsyncEngine,
    owner: AsyncEngine,
    tmp_path: Path,
) -> None:
    settings = {"QUOTAGATE_WEBHOOK_URL": receiver.url, "QUOTAGATE_WEBHOOK_SECRET": SECRET}
    receiver.answer = lambda _: None
    [message_id] = await owe(settlement)
    async with running(servers, tmp_path, settings) as process:
        await process.becomes_ready()
        await receiver.got(1, message_id)
        process.signal(signal.SIGKILL)
        await process.ended()
        receiver.answer = lambda _: 204
        await make_due(owner)
        await process.start_ready()
        first, second = await receiver.got(2, message_id)
        assert first.body == second.body
        async with process.operator() as operator, asyncio.timeout(15):
            path = f"/webhook-deliveries/{message_id}"
            while (await told(operator.get(path)))["delivered_at"] is None:
                await asyncio.sleep(0.02)
            assert await process.metric("quotagate_control_plane_webhooks_owed") in {0, 1}


async def test_deliveries_are_paged_and_an_unknown_one_is_not_found(
    settlement: AsyncEngine, operator: httpx.AsyncClient
) -> None:
    ids = await owe(settlement, 3)
    page = await told(operator.get("/webhook-deliveries", params={"limit": 2}))
    rest = await told(
        operator.get("/webhook-deliveries", params={"cursor": page["next_cursor"], "limit": 2})
    )
    found = [item["message_id"] for item in page["items"] + rest["items"]]
    assert sorted(found) == sorted(ids)
    assert rest["next_cursor"] is None
    await told(operator.get("/webhook-deliveries/nothing"), 404)
