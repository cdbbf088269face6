"""Wires the control plane: the admin API on Postgres, the relay from the outbox to NATS."""

import contextlib
from datetime import timedelta
from functools import partial

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from control_plane.clients.admission import Admission
from control_plane.clients.bus import Bus
from control_plane.clients.edge import Edge
from control_plane.clients.questions import Questions
from control_plane.clients.receiver import Receiver
from control_plane.domain.webhooks import read_secrets
from control_plane.handlers import openapi
from control_plane.handlers.api import api
from control_plane.handlers.deliver import Deliver, Terms
from control_plane.handlers.expiry import Expiry
from control_plane.handlers.gate import BodyBounds, Gate
from control_plane.handlers.observation import Observation
from control_plane.handlers.relay import Relay
from control_plane.handlers.services import Services
from control_plane.settings import ControlPlaneSettings
from control_plane.store.database import Database
from control_plane.store.notifications import Notifications
from kit import postgres
from kit.asgi import health_routes, lifespan
from kit.background import Loop, running
from kit.health import Health
from kit.traces.tracer import Tracer
from tables import guards


def build(settings: ControlPlaneSettings, tracer: Tracer | None = None) -> Starlette:
    """Return the application.

    Whatever is not listed here as public is behind the gate, so a route that is added later needs
    the token by itself.
    """
    health = Health(settings.recheck_s)
    engine = postgres.connect(settings)
    database = Database(engine)
    bus = Bus(settings)
    relay = Relay(database, bus, settings.outbox_poll_s, settings.outbox_ack_timeout_s)
    questions = Questions(bus, settings.limits_timeout_s, tracer)
    admin = api(
        Services(
            database=database,
            admission=Admission(questions),
            edge=Edge(questions),
            key_pepper=settings.key_pepper.get_secret_value(),
            wake_relay=relay.wake,
        )
    )
    document = openapi.describe(admin)

    async def openapi_document(_request: Request) -> Response:
        return JSONResponse(document)

    bounds = BodyBounds(settings.admin_body_max_bytes, settings.admin_body_timeout_s)
    gate = Gate(admin, settings.admin_token.get_secret_value(), bounds, lambda: health.is_open)
    receiver, deliver = _webhook(settings, database)
    loops = _loops(settings, database, bus, (relay, deliver))

    async def open_service(stack: contextlib.AsyncExitStack) -> None:
        stack.push_async_callback(engine.dispose)
        if receiver is not None:
            stack.push_async_callback(receiver.close)
        await health.guard(partial(postgres.check, engine), partial(guards.check, engine))
        health.add("postgres", partial(postgres.ping, engine))
        health.add("nats", bus.check)
        for name, loop in loops.items():
            await stack.enter_async_context(running(loop, name, settings.grace_s))

    return Starlette(
        routes=[
            *health_routes(health),
            Route("/openapi.json", openapi_document),
            Mount("/", Observation(gate)),
        ],
        lifespan=lifespan(open_service, health),
    )


def _loops(
    settings: ControlPlaneSettings,
    database: Database,
    bus: Bus,
    senders: tuple[Relay, Deliver | None],
) -> dict[str, Loop]:
    """Return what runs while the service does, stopped in the reverse order.

    The relay before its bus; whatever sends is woken by the commits of any replica.
    """
    relay, deliver = senders

    def wake() -> None:
        relay.wake()
        if deliver is not None:
            deliver.wake()

    loops: dict[str, Loop] = {
        "bus": partial(bus.run, on_connected=relay.wake),
        "expiry": Expiry(database, timedelta(hours=settings.idempotency_retention_h)).run,
        "notifications": Notifications(settings.database_url.get_secret_value(), wake).run,
        "relay": relay.run,
    }
    if deliver is not None:
        loops["webhook"] = deliver.run
    return loops


def _webhook(
    settings: ControlPlaneSettings, database: Database
) -> tuple[Receiver | None, Deliver | None]:
    """Return who is told of events and what tells them; without an address nobody is."""
    if not settings.webhook_url:
        return None, None
    receiver = Receiver(settings.webhook_url, settings.webhook_timeout_s)
    terms = Terms(
        read_secrets(settings.webhook_secret.get_secret_value()),
        settings.webhook_timeout_s,
        timedelta(hours=settings.webhook_patience_h),
    )
    return receiver, Deliver(database, receiver, terms)
