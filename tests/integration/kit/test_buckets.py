"""Buckets on a real server: of several writers one wins, values end, a full one refuses."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from nats.aio.client import Client
from nats.js.api import DiscardPolicy

from contracts.contract import Bucket, Message
from kit.bus.buckets import BucketStore, Kept, check_buckets, config, ensure_buckets
from kit.bus.errors import ConflictError, NoResponderError, StreamRefusedError
from kit.errors import NotReadyError
from kit.ids import new_id

HOUR_S = 3600


class Fact(Message, frozen=True, kw_only=True):
    number: int
    padding: str = ""


@pytest.fixture
async def bucket(nats: Client) -> AsyncIterator[Bucket[Fact]]:
    bucket = Bucket(
        name=f"TEST_{new_id().replace('-', '_')}",
        value=Fact,
        user="tester",
        summary="A bucket of the tests.",
        max_age_s=HOUR_S,
        max_bytes=64 * 1024,
        max_value_bytes=32 * 1024,
    )
    await ensure_buckets(nats, [bucket], replicas=1)
    yield bucket
    await nats.jetstream().delete_stream(bucket.stream)


@pytest.fixture
def store(nats: Client, bucket: Bucket[Fact]) -> BucketStore[Fact]:
    return BucketStore(nats, bucket, timeout_s=5)


async def test_what_is_written_is_read(store: BucketStore[Fact]) -> None:
    assert await store.read("a") == Kept(None, 0, 0)
    before_us = await store.now_us()
    revision = await store.write("a", Fact(number=1), 0, HOUR_S)
    kept = await store.read("a")
    assert (kept.value, kept.revision) == (Fact(number=1), revision)
    assert before_us <= kept.written_at_us <= await store.now_us()


async def test_of_many_writers_one_wins(store: BucketStore[Fact]) -> None:
    results = await asyncio.gather(
        *(store.write("a", Fact(number=number), 0, HOUR_S) for number in range(20)),
        return_exceptions=True,
    )
    assert sum(isinstance(result, ConflictError) for result in results) == 19
    (revision,) = [result for result in results if isinstance(result, int)]
    assert (await store.read("a")).revision == revision


async def test_a_write_names_what_it_replaces(store: BucketStore[Fact]) -> None:
    first = await store.write("a", Fact(number=1), 0, HOUR_S)
    await store.write("b", Fact(number=9), 0, HOUR_S)
    second = await store.write("a", Fact(number=2), first, HOUR_S)
    with pytest.raises(ConflictError):
        await store.write("a", Fact(number=3), first, HOUR_S)
    assert await store.read("a") == Kept(
        Fact(number=2), second, (await store.read("a")).written_at_us
    )


async def test_what_is_removed_may_be_written_anew(store: BucketStore[Fact]) -> None:
    first = await store.write("a", Fact(number=1), 0, HOUR_S)
    await store.remove("a", first)
    gone = await store.read("a")
    assert gone.value is None
    with pytest.raises(ConflictError):
        await store.remove("a", first)
    await store.write("a", Fact(number=2), gone.revision, HOUR_S)
    assert (await store.read("a")).value == Fact(number=2)


async def test_a_value_ends(store: BucketStore[Fact]) -> None:
    await store.write("a", Fact(number=1), 0, life_s=1)
    async with asyncio.timeout(20):
        while (await store.read("a")).value is not None:
            await asyncio.sleep(0.05)
    # Nothing is left of it: the key is as if it had never been.
    assert (await store.read("a")).revision == 0


async def test_a_full_bucket_refuses_and_keeps_what_it_has(store: BucketStore[Fact]) -> None:
    large = Fact(number=1, padding="x" * 20_000)
    for key in "abc":
        await store.write(key, large, 0, HOUR_S)
    with pytest.raises(StreamRefusedError):
        await store.write("d", large, 0, HOUR_S)
    assert [(await store.read(key)).value for key in "abc"] == [large] * 3


async def test_a_value_too_large_is_refused(store: BucketStore[Fact]) -> None:
    with pytest.raises(StreamRefusedError):
        await store.write("a", Fact(number=1, padding="x" * 40_000), 0, HOUR_S)


async def test_no_bucket(nats: Client, bucket: Bucket[Fact]) -> None:
    missing = replace(bucket, name="NOWHERE")
    store = BucketStore(nats, missing, timeout_s=5)
    with pytest.raises(NoResponderError):
        await store.write("a", Fact(number=1), 0, HOUR_S)
    with pytest.raises(NoResponderError):
        await store.read("a")
    with pytest.raises(NotReadyError):
        await check_buckets(nats, [missing])


async def test_a_bucket_that_makes_room_by_forgetting_is_not_accepted(
    nats: Client, bucket: Bucket[Fact]
) -> None:
    await check_buckets(nats, [bucket])
    jetstream = nats.jetstream()
    await jetstream.update_stream(replace(config(bucket, 1), discard=DiscardPolicy.OLD))
    with pytest.raises(NotReadyError):
        await check_buckets(nats, [bucket])
    await ensure_buckets(nats, [bucket], replicas=1)
    await check_buckets(nats, [bucket])
