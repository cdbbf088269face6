"""Real servers that are configured wrongly for as long as a block runs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import asyncpg
from integration.bus import nats_settings
from integration.quotagate.wire import replace_stream
from nats.js.api import DiscardPolicy, StreamConfig
from redis.asyncio import Redis

from contracts.idempotency import IDEMPOTENCY
from contracts.inference import INFERENCE_RECORDS
from kit.bus import buckets
from kit.bus.connection import connection
from kit.bus.streams import config
from quotagate.stack import Servers, Stack

Wrong = Callable[[Stack], contextlib.AbstractAsyncContextManager[None]]

_PATIENCE_S = 20


def redis_setting(name: str, value: str) -> Wrong:
    """Return what sets one of Valkey's settings."""

    @contextlib.asynccontextmanager
    async def wrong(lab: Stack) -> AsyncIterator[None]:
        async with Redis.from_url(lab.servers.redis_url, decode_responses=True) as client:
            before = await client.config_get(name)
            await client.config_set(name, value)
            try:
                yield
            finally:
                await client.config_set(name, before[name] or "")

    return wrong


@contextlib.asynccontextmanager
async def open_redis(lab: Stack) -> AsyncIterator[None]:
    """Let anyone in."""
    async with Redis.from_url(lab.servers.redis_url) as client:
        await client.acl_setuser("default", enabled=True, nopass=True)
        try:
            yield
        finally:
            await client.acl_setuser("default", enabled=False, reset=True)


def postgres_setting(name: str) -> Wrong:
    """Return what switches one of Postgres's settings off, for every new session."""

    @contextlib.asynccontextmanager
    async def wrong(lab: Stack) -> AsyncIterator[None]:
        await _alter_system(lab.servers, name, f"ALTER SYSTEM SET {name} = off", "off")
        try:
            yield
        finally:
            await _alter_system(lab.servers, name, f"ALTER SYSTEM RESET {name}", "on")

    return wrong


@contextlib.asynccontextmanager
async def careless_role(lab: Stack) -> AsyncIterator[None]:
    """Have settlement's role commit without syncing."""
    url = lab.servers.database_urls["postgres"]
    await _run(url, "ALTER ROLE quotagate_settlement SET synchronous_commit = off")
    try:
        yield
    finally:
        await _run(url, "ALTER ROLE quotagate_settlement RESET synchronous_commit")


@contextlib.asynccontextmanager
async def unsynced_jetstream(lab: Stack) -> AsyncIterator[None]:
    """Have JetStream acknowledge before it syncs, as it does by default."""
    file = lab.directory / "nats" / "nats.conf"
    before = file.read_text()
    after = before.replace("sync_interval: always", "sync_interval: 2m")
    assert after != before
    file.write_text(after)
    await asyncio.to_thread(lab.restart, "nats")
    try:
        yield
    finally:
        file.write_text(before)
        await asyncio.to_thread(lab.restart, "nats")


def stream_with(**changes: object) -> Wrong:
    """Return what makes the stream of records anew with another configuration."""

    @contextlib.asynccontextmanager
    async def wrong(lab: Stack) -> AsyncIterator[None]:
        made = config(INFERENCE_RECORDS, replicas=1).evolve(**changes)
        async with _made_anew(lab.servers, made):
            yield

    return wrong


@contextlib.asynccontextmanager
async def missing_stream(lab: Stack) -> AsyncIterator[None]:
    """Remove the stream of records."""
    async with _made_anew(lab.servers, None):
        yield


@contextlib.asynccontextmanager
async def forgetful_bucket(lab: Stack) -> AsyncIterator[None]:
    """Have the bucket of idempotency keys drop old ones when it is full."""
    name, made = IDEMPOTENCY.stream, buckets.config(IDEMPOTENCY, replicas=1)
    async with connection(nats_settings(lab.servers, "operator"), "test") as client:
        await replace_stream(client, name, made.evolve(discard=DiscardPolicy.OLD))
        try:
            yield
        finally:
            await replace_stream(client, name, made)


@contextlib.asynccontextmanager
async def missing_bucket(lab: Stack) -> AsyncIterator[None]:
    """Remove the bucket of idempotency keys."""
    name, made = IDEMPOTENCY.stream, buckets.config(IDEMPOTENCY, replicas=1)
    async with connection(nats_settings(lab.servers, "operator"), "test") as client:
        await replace_stream(client, name, None)
        try:
            yield
        finally:
            await replace_stream(client, name, made)


@contextlib.asynccontextmanager
async def _made_anew(servers: Servers, made: StreamConfig | None) -> AsyncIterator[None]:
    name = INFERENCE_RECORDS.name
    async with connection(nats_settings(servers, "operator"), "test") as client:
        await replace_stream(client, name, made)
        try:
            yield
        finally:
            await replace_stream(client, name, config(INFERENCE_RECORDS, replicas=1))


async def _alter_system(servers: Servers, name: str, statement: str, becomes: str) -> None:
    """Change a setting; returns when new sessions have it."""
    url = servers.database_urls["postgres"]
    await _run(url, statement)
    await _run(url, "SELECT pg_reload_conf()")
    async with asyncio.timeout(_PATIENCE_S):
        while await _run(url, f"SHOW {name}") != becomes:
            await asyncio.sleep(0.02)


async def _run(url: str, statement: str) -> object:
    session = await asyncpg.connect(url)
    try:
        return await session.fetchval(statement)
    finally:
        await session.close()
