"""Wires the edge: the bus, the providers, the spool and the journal, the endpoints."""

import asyncio
import contextlib
from functools import partial
from importlib.metadata import version

from nats.aio.client import Client
from starlette.applications import Starlette
from starlette.routing import Route as HttpRoute

from contracts.idempotency import IDEMPOTENCY
from contracts.inference import INFERENCE_RECORDS
from contracts.responses import STORED_RESPONSES
from contracts.windows import ENDPOINT_WINDOWS
from edge_proxy.clients.admission import AdmissionClient, AdmissionTimeOuts
from edge_proxy.clients.hand_off import HandOff, Patience
from edge_proxy.clients.keys import KeyDirectory, KeyTimes
from edge_proxy.clients.provider import ProviderClient
from edge_proxy.domain.addresses import Proxies
from edge_proxy.domain.endpoints import ENDPOINTS
from edge_proxy.domain.policies import Policies
from edge_proxy.errors import DataDirectoryError
from edge_proxy.handlers import models, stored_responses
from edge_proxy.handlers.accounting import Accounting
from edge_proxy.handlers.edge import Edge, Gate
from edge_proxy.handlers.fallback import FALLBACKS
from edge_proxy.handlers.in_flight import InFlight
from edge_proxy.handlers.inference import InferenceEndpoint
from edge_proxy.handlers.shedding import shedding
from edge_proxy.handlers.telling_windows import TellWindows
from edge_proxy.settings import Settings
from edge_proxy.store.claim import claim_new
from edge_proxy.store.configuration import Configuration, load_policies, load_routes
from edge_proxy.store.held_key import KeyTerms
from edge_proxy.store.idempotency import IdempotencyStore
from edge_proxy.store.inheritance import take_over_orphans
from edge_proxy.store.journal import Journal
from edge_proxy.store.spool import Spool
from edge_proxy.store.stored_responses import StoredResponses
from kit import log
from kit.asgi import service_app
from kit.background import running
from kit.bus import connection as bus
from kit.bus.buckets import check_buckets
from kit.bus.requests import Requester
from kit.bus.serving import Server
from kit.bus.streams import check_streams, check_synced, streams_problem
from kit.clock import SystemClock
from kit.errors import NotReadyError
from kit.health import CheckResult, Health
from kit.paces import Paces
from kit.traces import bus as traced
from kit.traces.tracer import Tracer

SERVICE = "edge-proxy"
_LAST_GRACE_S = 5.0
_MAX_QUESTIONS = 100
_MS_PER_S = 1_000
_MINUTE_S = 60

_logger = log.get(__name__)
_CLOCK = SystemClock()


def policy_endpoints() -> tuple[str, ...]:
    """Return the endpoints that may have policies, each a method and a path."""
    inferences = (f"POST {row.path}" for row in ENDPOINTS)
    return (*inferences, models.ENDPOINT, models.ONE_ENDPOINT, stored_responses.ENDPOINT)


def _policies(settings: Settings) -> Policies:
    if settings.policies_file is None:
        return {}
    return load_policies(settings.policies_file, policy_endpoints())


def proxies_of(settings: Settings) -> Proxies:
    """Return the proxies in front of this edge."""
    return Proxies(settings.trusted_proxies, settings.forwarding_header)


def build(settings: Settings, tracer: Tracer | None = None) -> Starlette:
    """Return the application; it opens its clients once it runs.

    Its `state.protocol` is what it expects to be served with.

    Raises:
        RoutesError: the routes file can't be read, or is wrong.
        PoliciesError: the policies file likewise.

    """
    health = Health(settings.recheck_s)
    gate = Gate()
    files = Configuration(load_routes(settings.routes_file), _policies(settings))
    app = service_app(
        [
            *(
                HttpRoute(row.path, InferenceEndpoint(row, gate), methods=["POST"])
                for row in ENDPOINTS
            ),
            *(
                HttpRoute(path, models.Models(gate), methods=["GET"])
                for path in (models.PATH, models.ONE_PATH)
            ),
            HttpRoute(
                stored_responses.PATH, stored_responses.StoredResponse(gate), methods=["GET"]
            ),
        ],
        partial(_open, settings, files, health, gate, tracer),
        health,
    )
    # A redirect would be made of the Host header, which is whatever the client says.
    app.router.redirect_slashes = False
    app.state.protocol = shedding(gate)
    for status, handler in FALLBACKS.items():
        app.add_exception_handler(status, handler)
    return app


async def _open(
    settings: Settings,
    files: Configuration,
    health: Health,
    gate: Gate,
    tracer: Tracer | None,
    stack: contextlib.AsyncExitStack,
) -> None:
    """Take requests once the bus is there and records can be kept, and not before."""
    directories: list[KeyDirectory] = []

    def catch_up() -> None:
        # Revocations that were announced while the bus was gone never reached us.
        for directory in directories:
            directory.forget_all()

    client = await stack.enter_async_context(bus.connection(settings, SERVICE, catch_up))
    records = await _open_records(settings, client, health, stack)
    hand_off, journal = await _open_hand_off(settings, records, tracer, stack)
    requester = traced.requester(client, tracer)
    admission = _admission(settings, requester)
    keys = _keys(settings, requester)
    directories.append(keys)
    await keys.follow_changes(client)
    idempotency = await _open_idempotency(settings, records, stack)
    providers = ProviderClient(files.routes.providers)
    stack.push_async_callback(providers.close)
    edge = Edge(
        settings=settings,
        routes=files.routes,
        clock=_CLOCK,
        keys=keys,
        admission=admission,
        providers=providers,
        hand_off=hand_off,
        accounting=Accounting(admission, hand_off, journal, _CLOCK, tracer),
        in_flight=InFlight(settings.max_in_flight, settings.max_at_work),
        idempotency=idempotency,
        stored_responses=StoredResponses(records, settings.stored_response_timeout_ms / _MS_PER_S),
        policies=files.policies,
        proxies=proxies_of(settings),
        failures=_failures(settings),
    )
    _watch(health, client, edge)
    answers = traced.server(client, SERVICE, _CLOCK, _MAX_QUESTIONS, tracer)
    await _tell_windows(answers, files.policies, stack)
    gate.edge = edge
    stack.push_async_callback(_leave, gate, edge, health)


async def _open_records(
    settings: Settings, client: Client, health: Health, stack: contextlib.AsyncExitStack
) -> Client:
    """Open the connection that records take, once they are safe where it leads."""
    # What one connection sends is handled in order, a publish until it is on the disk: questions to
    # admission wait for nobody's sync on a connection of their own.
    records = await stack.enter_async_context(bus.connection(settings, f"{SERVICE}-records"))
    await health.guard(
        partial(check_synced, settings),
        partial(check_streams, client, (INFERENCE_RECORDS,)),
        partial(check_buckets, records, (IDEMPOTENCY, STORED_RESPONSES)),
    )
    return records


async def _tell_windows(
    server: Server, policies: Policies, stack: contextlib.AsyncExitStack
) -> None:
    await server.start(version("quotagate-edge-proxy"))
    stack.push_async_callback(server.stop, _LAST_GRACE_S)
    await server.add(ENDPOINT_WINDOWS, TellWindows(policies, policy_endpoints()).handle)


def _admission(settings: Settings, requester: Requester) -> AdmissionClient:
    time_outs = AdmissionTimeOuts(
        preflight_ms=settings.preflight_timeout_ms, postflight_ms=settings.postflight_timeout_ms
    )
    return AdmissionClient(requester, _CLOCK, time_outs)


def _keys(settings: Settings, requester: Requester) -> KeyDirectory:
    times = KeyTimes(
        lookup_timeout_ms=settings.key_lookup_timeout_ms,
        fresh_s=settings.key_fresh_s,
        stale_s=settings.key_stale_s,
    )
    return KeyDirectory(requester, _CLOCK, times)


def _failures(settings: Settings) -> Paces | None:
    most = settings.max_auth_failures_per_address
    return Paces(most, _MINUTE_S) if most else None


async def _open_hand_off(
    settings: Settings, client: Client, tracer: Tracer | None, stack: contextlib.AsyncExitStack
) -> tuple[HandOff, Journal]:
    """Open the spool and the journal, with what processes that died left behind."""
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        claim = claim_new(settings.data_dir)
        stack.callback(claim.release)
        spool = Spool(claim.spool)
        journal = Journal(claim.journal)
        stack.callback(journal.close)
        take_over_orphans(settings.data_dir, spool)
    except (OSError, DataDirectoryError) as error:
        raise NotReadyError(f"data directory: {error}") from error
    hand_off = HandOff(
        client,
        traced.publisher(client, tracer),
        spool,
        journal,
        Patience(hand_off_s=settings.hand_off_s, ack_timeout_s=settings.ack_timeout_s),
    )
    adopt = partial(_adopt, settings, spool)
    for loop, name in ((hand_off.republish, "republish"), (adopt, "adopt")):
        await stack.enter_async_context(running(loop, name, settings.ack_timeout_s))
    return hand_off, journal


async def _open_idempotency(
    settings: Settings, client: Client, stack: contextlib.AsyncExitStack
) -> IdempotencyStore:
    terms = KeyTerms(
        life_s=settings.idempotency_s,
        lease_s=settings.idempotency_lease_s,
        answer_bytes=settings.idempotency_answer_bytes,
        timeout_s=settings.idempotency_timeout_ms / _MS_PER_S,
    )
    store = IdempotencyStore(client, terms)
    await stack.enter_async_context(running(store.pay, "idempotency", terms.timeout_s))
    return store


async def _adopt(settings: Settings, spool: Spool, stop: asyncio.Event) -> None:
    """Take over what edges of this data directory leave when they die, until told to stop."""
    while not stop.is_set():
        try:
            async with asyncio.timeout(settings.orphan_check_s):
                await stop.wait()
        except TimeoutError:
            try:
                found = take_over_orphans(settings.data_dir, spool)
            except DataDirectoryError as error:
                _logger.warning("orphans not taken over", error=str(error))
            else:
                if found:
                    _logger.info("orphans taken over", processes=found)


def _watch(health: Health, client: Client, edge: Edge) -> None:
    """Say what this edge needs to be worth sending requests to."""

    async def hand_off() -> CheckResult:
        waiting = edge.hand_off.waiting
        return f"{waiting} records wait for the stream" if waiting else None

    health.add("nats", partial(bus.check, client))
    health.add("stream", partial(streams_problem, client, (INFERENCE_RECORDS,)))
    health.add("hand_off", hand_off)
    health.add("admission", edge.admission.check)


async def _leave(gate: Gate, edge: Edge, health: Health) -> None:
    """Take nothing more, and bring what is in hand to its end."""
    gate.edge = None
    if not health.stopping:
        # Told to stop, the server has waited already before it closes us.
        await edge.in_flight.finish(edge.settings.grace_s)
    edge.hand_off.stop()
    await edge.in_flight.stop(_LAST_GRACE_S)
