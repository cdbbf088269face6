"""Wires tier-cache: NATS, Redis and Postgres, the lookups and fills, the change events."""

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from importlib.metadata import version

from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.applications import Starlette

from contracts.cache import (
    BALANCE_FILL,
    DAY_FILL,
    KEY_RESOLVE,
    POLICIES,
    PRICES,
    SPEND_FILL,
    TIER_RESOLVE,
)
from contracts.control import CONTROL_EVENTS
from contracts.dead import DEAD_LETTERS
from contracts.inference import INFERENCE_RECORDS
from kit import postgres, redis
from kit.asgi import service_app
from kit.background import running
from kit.bus import connection as bus
from kit.bus import streams
from kit.bus.consuming import Puller
from kit.bus.publishing import Publisher
from kit.bus.serving import Server
from kit.clock import SystemClock
from kit.health import Health
from kit.traces import bus as traced
from kit.traces.tracer import Tracer
from redis_scripts import RedisScripts
from tier_cache.handlers.changes import DURABLE, Changes
from tier_cache.handlers.fills import Fills
from tier_cache.handlers.lookups import Lookups
from tier_cache.settings import Settings
from tier_cache.store.database import Database
from tier_cache.store.waiting import WaitingRecords

_SERVICE = "tier-cache"
_CLOCK = SystemClock()


def build(settings: Settings, tracer: Tracer | None = None) -> Starlette:
    """Return the application; it opens its clients once it runs."""
    health = Health(settings.recheck_s)
    return service_app((), partial(_open, settings, health, tracer), health)


async def _open(
    settings: Settings, health: Health, tracer: Tracer | None, stack: contextlib.AsyncExitStack
) -> None:
    """Follow changes and answer as soon as NATS and Redis are there.

    Postgres has a say in readiness alone: without it changes must still reach Redis.
    """
    client = await stack.enter_async_context(bus.connection(settings, _SERVICE))
    health.add("nats", partial(bus.check, client))
    # It follows the first, buries into the second, and counts what waits in the third.
    used = (CONTROL_EVENTS, DEAD_LETTERS, INFERENCE_RECORDS)
    health.add("streams", partial(streams.streams_problem, client, used))
    await health.guard(
        partial(streams.check_streams, client, (CONTROL_EVENTS, DEAD_LETTERS)),
        partial(streams.check_synced, settings),
    )
    scripts = await stack.enter_async_context(_redis_scripts(settings, health))
    engine = await stack.enter_async_context(_postgres(settings, health))

    puller = Puller(client, DURABLE)
    await puller.open()
    stack.push_async_callback(puller.close)
    changes = Changes(puller, Publisher(client), scripts, _CLOCK)
    await stack.enter_async_context(running(changes.run, "changes", settings.grace_s))
    server = traced.server(client, _SERVICE, _CLOCK, settings.max_in_flight, tracer)
    await server.start(version("quotagate-tier-cache"))
    stack.push_async_callback(server.stop, settings.grace_s)
    database = Database(engine)
    await _serve(server, Lookups(database), Fills(database, scripts, WaitingRecords(client)))


async def _serve(server: Server, lookups: Lookups, fills: Fills) -> None:
    await server.add(KEY_RESOLVE, lookups.resolve_key)
    await server.add(POLICIES, lookups.policies)
    await server.add(PRICES, lookups.prices)
    await server.add(TIER_RESOLVE, fills.resolve_tier)
    await server.add(BALANCE_FILL, fills.fill_balance)
    await server.add(DAY_FILL, fills.fill_day)
    await server.add(SPEND_FILL, fills.fill_spend)


@contextlib.asynccontextmanager
async def _redis_scripts(settings: Settings, health: Health) -> AsyncIterator[RedisScripts]:
    client = redis.connect(settings)
    scripts = RedisScripts(client)
    try:
        await health.guard(partial(redis.check, client))
        health.add("redis", partial(redis.ping, client))
        yield scripts
    finally:
        await scripts.drain()
        await client.aclose()


@contextlib.asynccontextmanager
async def _postgres(settings: Settings, health: Health) -> AsyncIterator[AsyncEngine]:
    engine = postgres.connect(settings)
    try:
        health.add("postgres", partial(postgres.ping, engine))
        yield engine
    finally:
        await engine.dispose()
