"""The composition root: opens the clients, wires them, closes them in the reverse order."""

import contextlib

from nats.aio.client import Client
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.applications import Starlette

from contracts.dead import DEAD_LETTERS
from contracts.inference import INFERENCE_RECORDS
from kit import postgres, redis
from kit.asgi import service_app
from kit.background import Loop, running
from kit.bus import connection
from kit.bus.consuming import Puller
from kit.bus.publishing import Publisher
from kit.bus.streams import check_streams, check_synced, streams_problem
from kit.clock import SystemClock
from kit.health import Health
from kit.traces.tracer import Tracer
from redis_scripts import RedisScripts
from settlement.handlers import given_up
from settlement.handlers.accounted import Accounted
from settlement.handlers.backlog import Backlog
from settlement.handlers.consume import Consume, durable
from settlement.handlers.dead_letters import CONSUMER, DeadLetters
from settlement.handlers.forget_spend import ForgetSpend
from settlement.handlers.given_up import GivenUp
from settlement.handlers.measure import Measure
from settlement.handlers.pace import every
from settlement.handlers.reconcile import Reconcile
from settlement.handlers.reconcile_spend import ReconcileSpend
from settlement.handlers.settle import Settle
from settlement.handlers.traced import RecordTraces
from settlement.handlers.trim import Trim
from settlement.handlers.trim_early import TrimEarly
from settlement.settings import Settings
from settlement.store.accounts import AccountStore
from settlement.store.balances import BalanceCache
from settlement.store.dead_letter_stream import DeadLetterStream
from settlement.store.prices import PriceBook
from settlement.store.record_stream import RecordStream
from settlement.store.records import RecordStore
from settlement.store.spend_books import SpendBooks
from tables import guards

_FORGET_INTERVAL_S = 3_600.0
_STREAMS = (INFERENCE_RECORDS, DEAD_LETTERS)


def build(settings: Settings, tracer: Tracer | None = None) -> Starlette:
    """Return the application; it opens when it is served."""
    health = Health(settings.recheck_s)

    async def open_service(stack: contextlib.AsyncExitStack) -> None:
        client = await _open_bus(stack, settings, health)
        engine = await _open_database(stack, settings, health)
        balances = await _open_cache(stack, settings, health)
        health.add("nats", lambda: connection.check(client))
        health.add("streams", lambda: streams_problem(client, _STREAMS))
        health.add("postgres", lambda: postgres.ping(engine))
        backlog = Backlog(None if tracer is None else RecordTraces(tracer, SystemClock()))
        loops = await _loops(client, engine, balances, backlog, settings)
        for name, loop in loops.items():
            await stack.enter_async_context(running(loop, name, settings.grace_s))

    return service_app([], open_service, health)


async def _open_bus(stack: contextlib.AsyncExitStack, settings: Settings, health: Health) -> Client:
    client = await stack.enter_async_context(connection.connection(settings, "settlement"))
    await health.guard(
        lambda: check_synced(settings),
        lambda: check_streams(client, _STREAMS),
    )
    return client


async def _open_database(
    stack: contextlib.AsyncExitStack, settings: Settings, health: Health
) -> AsyncEngine:
    engine = postgres.connect(settings, plan_each_time=True)
    stack.push_async_callback(engine.dispose)
    await health.guard(lambda: postgres.check(engine), lambda: guards.check(engine))
    return engine


async def _open_cache(
    stack: contextlib.AsyncExitStack, settings: Settings, health: Health
) -> BalanceCache:
    client = redis.connect(settings)
    stack.push_async_callback(client.aclose)
    await health.guard(lambda: redis.check(client))
    scripts = RedisScripts(client)
    stack.push_async_callback(scripts.drain)
    health.add("redis", lambda: redis.ping(client))
    return BalanceCache(client, scripts)


async def _loops(
    client: Client,
    engine: AsyncEngine,
    balances: BalanceCache,
    backlog: Backlog,
    settings: Settings,
) -> dict[str, Loop]:
    """Return what runs until the service closes; the last is told to stop first."""
    clock = SystemClock()
    records, accounts = RecordStore(engine), AccountStore(engine, PriceBook())
    stream = RecordStream(client, CONSUMER)
    dead_letters = DeadLetters(Publisher(client), clock)
    record_puller = Puller(client, durable(settings))
    advisory_puller = Puller(client, given_up.DURABLE)
    await record_puller.open()
    await advisory_puller.open()
    measure = Measure(engine, stream, clock)
    trim = Trim(records, stream, clock, settings.replay_window_s)
    accounted = Accounted(records, stream, DeadLetterStream(client, CONSUMER))
    trim_early = TrimEarly(records, stream, accounted, clock, settings.early_trim_share)
    books = SpendBooks(engine)
    spend = ReconcileSpend(balances, books, stream, clock)
    forget = ForgetSpend(books, settings.spend_keep_days)
    reconcile = Reconcile(balances, accounts, stream, spend)
    return {
        "measure": every(settings.measure_interval_s, measure.tick, "measure"),
        "trim": every(settings.trim_interval_s, trim.tick, "trim"),
        "forget spend": every(_FORGET_INTERVAL_S, forget.tick, "forget spend"),
        "trim early": every(settings.early_trim_interval_s, trim_early.tick, "trim early"),
        "reconcile": every(settings.reconcile_interval_s, reconcile.tick, "reconcile"),
        "settle": Settle(records, accounts, balances, backlog, settings).run,
        "given up": GivenUp(advisory_puller, stream, records, dead_letters).run,
        "consume": Consume(record_puller, records, dead_letters, backlog, settings).run,
    }
