"""The pull consumer on a real NATS server."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import nats
import pytest
from nats.aio.client import Client
from nats.js.api import StreamConfig

from kit.bus.consuming import Durable, Puller
from kit.bus.errors import DisconnectedError
from kit.ids import new_id
from quotagate.stack import Servers

_FAR_S = 30.0
"""A wait that no test waits out."""


@pytest.fixture
async def client(servers: Servers) -> AsyncIterator[Client]:
    connected = await nats.connect(
        servers.nats_url, user="operator", password=servers.nats_passwords["operator"]
    )
    yield connected
    await connected.close()


@pytest.fixture
async def durable(client: Client) -> AsyncIterator[Durable]:
    stream = f"PULL-{new_id()}"
    await client.jetstream().add_stream(StreamConfig(name=stream, subjects=[f"{stream}.*"]))
    yield Durable(
        stream=stream,
        name="puller",
        subjects=(f"{stream}.*",),
        ack_wait_s=_FAR_S,
        max_deliver=5,
        max_ack_pending=100,
    )
    await client.jetstream().delete_stream(stream)


async def _publish(client: Client, durable: Durable, count: int) -> None:
    for number in range(count):
        await client.jetstream().publish(f"{durable.stream}.a", str(number).encode())


async def test_a_lone_message_does_not_wait_for_the_batch_to_fill(
    client: Client, durable: Durable
) -> None:
    puller = Puller(client, durable)
    await puller.open()
    fetching = asyncio.create_task(puller.fetch(10, _FAR_S))
    await _publish(client, durable, 1)
    started_s = time.monotonic()
    assert [message.data for message in await fetching] == [b"0"]
    assert time.monotonic() - started_s < _FAR_S / 2
    await puller.close()


async def test_a_batch_holds_what_is_there(client: Client, durable: Durable) -> None:
    await _publish(client, durable, 7)
    puller = Puller(client, durable)
    await puller.open()
    first, second = await puller.fetch(5, _FAR_S), await puller.fetch(5, _FAR_S)
    assert [int(message.data) for message in [*first, *second]] == list(range(7))
    assert len(first) == 5
    await puller.close()


async def test_nothing_came(client: Client, durable: Durable) -> None:
    puller = Puller(client, durable)
    await puller.open()
    assert list(await puller.fetch(5, 0.05)) == []
    await puller.close()


async def test_an_acknowledged_message_is_confirmed_and_a_given_back_one_comes_again(
    client: Client, durable: Durable
) -> None:
    await _publish(client, durable, 2)
    puller = Puller(client, durable)
    await puller.open()
    done, again = await puller.fetch(5, _FAR_S)
    await puller.ack(done)
    await puller.still_working(again)
    await puller.give_back(again)
    (redelivered,) = await puller.fetch(5, _FAR_S)
    assert (redelivered.data, redelivered.metadata.num_delivered) == (again.data, 2)
    await puller.ack(redelivered)
    info = await client.jetstream().consumer_info(durable.stream, durable.name)
    assert (info.num_pending, info.num_ack_pending) == (0, 0)
    await puller.close()


async def test_one_confirmation_speaks_for_a_batch(client: Client, durable: Durable) -> None:
    await _publish(client, durable, 60)
    puller = Puller(client, durable)
    await puller.open()
    batch = await puller.fetch(60, _FAR_S, gather_s=0.05)
    await puller.ack_all([])
    await puller.ack_all(batch)
    info = await client.jetstream().consumer_info(durable.stream, durable.name)
    assert info.ack_floor is not None
    assert (info.num_ack_pending, info.ack_floor.consumer_seq) == (0, len(batch))
    await puller.close()


async def test_a_consumer_that_is_gone_is_an_error_and_may_be_opened_again(
    client: Client, durable: Durable
) -> None:
    await _publish(client, durable, 1)
    puller = Puller(client, durable)
    await puller.open()
    await client.jetstream().delete_consumer(durable.stream, durable.name)
    with pytest.raises(DisconnectedError):
        await puller.fetch(5, _FAR_S)
    await puller.open()
    assert len(await puller.fetch(5, _FAR_S)) == 1
    await puller.close()


async def test_opening_brings_an_existing_consumer_to_its_configuration(
    client: Client, durable: Durable
) -> None:
    await Puller(client, durable).open()
    await Puller(client, replace(durable, max_deliver=9, ack_wait_s=12.0)).open()
    config = (await client.jetstream().consumer_info(durable.stream, durable.name)).config
    assert (config.max_deliver, config.ack_wait) == (9, 12.0)
