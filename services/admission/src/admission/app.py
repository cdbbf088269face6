"""Wires admission: NATS and Redis, the policies and prices in memory, the endpoints."""

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from importlib.metadata import version

import nats.errors
from nats.aio.client import Client
from starlette.applications import Starlette

from admission.clients.tier_cache import TierCache
from admission.handlers.leases import Leases
from admission.handlers.limits import TellLimits
from admission.handlers.postflight import Postflight
from admission.handlers.preflight import Preflight
from admission.handlers.reload import Reloader, follow
from admission.handlers.windows import JudgeWindows
from admission.settings import Settings
from admission.store.limits import Limits
from admission.store.memory import Memory
from admission.store.terms import Terms
from contracts.admission import LEASE_RELEASE, LEASE_RENEW, LIMITS, POSTFLIGHT, PREFLIGHT
from contracts.control import POLICY_CHANGED, PRICE_CHANGED
from contracts.windows import WINDOWS
from kit import redis
from kit.asgi import service_app
from kit.background import running
from kit.bus import connection as bus
from kit.clock import SystemClock
from kit.errors import NotReadyError
from kit.health import Health
from kit.traces import bus as traced
from kit.traces.tracer import Tracer
from redis_scripts import RedisScripts

_SERVICE = "admission"
_CLOCK = SystemClock()
_US_PER_S = 1_000_000


def build(settings: Settings, tracer: Tracer | None = None) -> Starlette:
    """Return the application; it opens its clients once it runs."""
    health = Health(settings.recheck_s)
    return service_app((), partial(_open, settings, health, tracer), health)


async def _open(
    settings: Settings, health: Health, tracer: Tracer | None, stack: contextlib.AsyncExitStack
) -> None:
    """Serve once the stores answer and policies and prices are loaded, and not before."""
    reloaders: list[Reloader] = []

    def catch_up() -> None:
        # What was announced while the bus was gone never reached us.
        for reloader in reloaders:
            reloader.changed()

    client = await stack.enter_async_context(bus.connection(settings, _SERVICE, catch_up))
    health.add("nats", partial(bus.check, client))
    scripts = await stack.enter_async_context(_redis_scripts(settings, health))
    memory = Memory(settings.remembered_teams, settings.explicable_tokens)
    tier_cache = TierCache(traced.requester(client, tracer))
    policies = Reloader(
        "policies", partial(_load_policies, memory, tier_cache), settings.refresh_interval_s
    )
    prices = Reloader(
        "prices", partial(_load_prices, memory, tier_cache), settings.refresh_interval_s
    )
    reloaders += (policies, prices)
    await _follow(client, policies, prices)
    for reloader in reloaders:
        await reloader.load_first()
        await stack.enter_async_context(running(reloader.run, reloader.what, grace_s=0))

    terms = Terms(int(settings.lease_s * _US_PER_S))
    limits = Limits(scripts, memory, _CLOCK, terms)
    server = traced.server(client, _SERVICE, _CLOCK, settings.max_in_flight, tracer)
    await server.start(version("quotagate-admission"))
    stack.push_async_callback(server.stop, settings.grace_s)
    preflight = Preflight(limits, memory, tier_cache, policies, _CLOCK)
    await server.add(PREFLIGHT, preflight.handle)
    await server.add(POSTFLIGHT, Postflight(limits).handle)
    leases = Leases(limits)
    await server.add(LEASE_RENEW, leases.renew)
    await server.add(LEASE_RELEASE, leases.release)
    await server.add(LIMITS, TellLimits(limits, memory).handle)
    await server.add(WINDOWS, JudgeWindows(limits, _CLOCK).handle)


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


async def _load_policies(memory: Memory, tier_cache: TierCache) -> None:
    loaded = await tier_cache.policies()
    memory.replace_policies(loaded.policies, loaded.impossible)


async def _load_prices(memory: Memory, tier_cache: TierCache) -> None:
    memory.replace_prices(await tier_cache.prices())


async def _follow(client: Client, policies: Reloader, prices: Reloader) -> None:
    """Listen for changes before the first load, so that none falls between the two."""
    try:
        await follow(client, POLICY_CHANGED, policies)
        await follow(client, PRICE_CHANGED, prices)
        await bus.flushed(client)
    except (nats.errors.Error, TimeoutError) as error:
        raise NotReadyError(f"nats: {type(error).__name__}") from error
