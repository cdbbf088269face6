"""Streams on a real server: an ack means stored once, a full one says so, a batch comes again."""

from collections.abc import AsyncIterator

import pytest
from nats.aio.client import Client

from contracts.contract import Event, Message, Stream
from kit.bus.consuming import Durable, Puller
from kit.bus.errors import NoResponderError, StreamRefusedError
from kit.bus.publishing import Publisher
from kit.bus.streams import check_streams, check_synced, ensure_streams
from kit.errors import NotReadyError
from kit.ids import new_id
from quotagate.stack import Servers

from .conftest import nats_settings


class Fact(Message, frozen=True, kw_only=True):
    number: int
    padding: str = ""


@pytest.fixture
async def stream(nats: Client) -> AsyncIterator[Stream]:
    name = f"TEST_{new_id()}"
    stream = Stream(
        name=name,
        subjects=(f"quota.v1.test.{name}.*",),
        owner="tester",
        summary="A stream of the tests.",
        max_bytes=64 * 1024,
    )
    await ensure_streams(nats, [stream], replicas=1)
    yield stream
    await nats.jetstream().delete_stream(name)


def _event(stream: Stream) -> Event[Fact]:
    return Event(
        subject=stream.subjects[0].replace("*", "{thing_id}"),
        message=Fact,
        emitted_by=("tester",),
        stream=stream.name,
        summary="A fact of the tests.",
    )


async def test_the_same_message_id_is_stored_once(nats: Client, stream: Stream) -> None:
    publisher = Publisher(nats)
    acks = [
        await publisher.publish(_event(stream), "a", Fact(number=1), "id-1", 2) for _ in range(3)
    ]
    assert [ack.seq for ack in acks] == [1, 1, 1]
    assert (await nats.jetstream().stream_info(stream.name)).state.messages == 1


async def test_a_full_stream_refuses_and_keeps_what_it_has(nats: Client, stream: Stream) -> None:
    publisher = Publisher(nats)
    fact = Fact(number=1, padding="x" * 30_000)
    await publisher.publish(_event(stream), "a", fact, "id-1", 2)
    await publisher.publish(_event(stream), "a", fact, "id-2", 2)
    with pytest.raises(StreamRefusedError):
        await publisher.publish(_event(stream), "a", fact, "id-3", 2)
    assert (await nats.jetstream().stream_info(stream.name)).state.first_seq == 1


async def test_a_missing_stream_is_known_at_once(nats: Client) -> None:
    event = Event(
        subject=f"quota.v1.nowhere.{new_id()}",
        message=Fact,
        emitted_by=("tester",),
        stream="NOWHERE",
        summary="An event without a stream.",
    )
    with pytest.raises(NoResponderError):
        await Publisher(nats).publish(event, None, Fact(number=1), "id", 30)
    with pytest.raises(NotReadyError):
        await check_streams(
            nats, [Stream(name="NOWHERE", subjects=("nowhere",), owner="t", summary="none")]
        )


async def test_making_a_stream_again_changes_nothing(nats: Client, stream: Stream) -> None:
    await Publisher(nats).publish(_event(stream), "a", Fact(number=1), "id-1", 2)
    await ensure_streams(nats, [stream], replicas=1)
    await check_streams(nats, [stream])
    assert (await nats.jetstream().stream_info(stream.name)).state.messages == 1


async def test_the_server_syncs_before_it_acknowledges(servers: Servers) -> None:
    await check_synced(nats_settings(servers))


async def test_what_is_not_acknowledged_comes_again(nats: Client, stream: Stream) -> None:
    publisher = Publisher(nats)
    for number in range(3):
        await publisher.publish(_event(stream), "a", Fact(number=number), f"id-{number}", 2)
    puller = Puller(
        nats,
        Durable(
            stream=stream.name,
            name="tester",
            subjects=stream.subjects,
            ack_wait_s=0.2,
            max_deliver=5,
            max_ack_pending=100,
        ),
    )
    await puller.open()
    first = await puller.fetch(10, 2)
    await puller.ack(first[1])
    seen: list[int] = []
    while len(seen) < 2:
        seen += [message.metadata.sequence.stream for message in await puller.fetch(10, 2)]
    assert sorted(seen) == [1, 3]
    assert await puller.fetch(10, 0.1) in ([], ())
