"""How every service starts, stops and reports: one ASGI application under uvicorn.

A service opens its clients in the background of its lifespan, so that `/health/live` answers while
a store is still missing and `/health/ready` says which. What isn't there yet is tried again; what
is a programmer's error ends the process. A service whose server becomes unsafe closes, and opens
again when it is mended.
"""

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import uvicorn
from prometheus_client import Counter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from kit import background, log
from kit.errors import NotReadyError
from kit.health import Health
from kit.http_leaving import LeavingProtocol
from kit.metrics import exposition
from kit.settings import ServiceSettings
from kit.traces.tracer import Tracer
from kit.traces.web import TracedApp

Open = Callable[[contextlib.AsyncExitStack], Awaitable[None]]
"""Opens a service: enters its clients on the stack and wires them; returns once it serves."""

_RETRY_S = 0.5
# Longer than clients and load balancers keep an idle connection: who closes last never meets a
# request on its way.
_KEEP_ALIVE_S = 75
# Objects made, and not freed by their count, before the cycles among them are looked for. A few
# requests in hand make as many as Python's own number: measured, the search for cycles took 5 % of
# the edge's CPU and 11 % of settlement's, and found next to nothing.
_OBJECTS_BETWEEN_LOOKS = 20_000
_logger = log.get(__name__)
_CLOSED = Counter(
    "quotagate_closed_unsafe_total",
    "Times a service closed because a server had become unsafe; /health/ready says why.",
)


async def _live(_request: Request) -> Response:
    return JSONResponse({"status": "live"})


def health_routes(health: Health) -> list[BaseRoute]:
    """Return `/health/live`, `/health/ready` and `/metrics`."""

    async def ready(_request: Request) -> Response:
        problems = await health.problems()
        if problems:
            return JSONResponse({"status": "not ready", "reasons": dict(problems)}, 503)
        return JSONResponse({"status": "ready"})

    async def metrics(_request: Request) -> Response:
        return exposition(ready=not await health.problems())

    return [
        Route("/health/live", _live),
        Route("/health/ready", ready),
        Route("/metrics", metrics),
    ]


def lifespan(
    open_service: Open, health: Health
) -> Callable[[object], contextlib.AbstractAsyncContextManager[None]]:
    """Return the lifespan that keeps a service open, and closes it in the reverse order."""

    @contextlib.asynccontextmanager
    async def run(_app: object) -> AsyncIterator[None]:
        stop = asyncio.Event()
        task = asyncio.create_task(_keep_open(open_service, health, stop), name="service")
        task.add_done_callback(background.leave_if_crashed)
        yield
        health.stopping = True
        stop.set()
        await asyncio.wait([task])

    return run


def service_app(routes: Sequence[BaseRoute], open_service: Open, health: Health) -> Starlette:
    """Return an application with the service's routes and those of :func:`health_routes`."""
    return Starlette(
        routes=[*routes, *health_routes(health)], lifespan=lifespan(open_service, health)
    )


async def _keep_open(open_service: Open, health: Health, stop: asyncio.Event) -> None:
    while not stop.is_set():
        async with contextlib.AsyncExitStack() as stack:
            opening = asyncio.ensure_future(open_service(stack))
            stopped = asyncio.ensure_future(stop.wait())
            await asyncio.wait([opening, stopped], return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                await background.cancel([opening])
                return
            try:
                opening.result()
            except NotReadyError as error:
                health.closed(str(error))
                _logger.warning("not ready yet", reason=str(error))
            else:
                health.opened()
                _logger.info("ready")
                reason = await _stopped_or_unsafe(stopped, health)
                if reason is None:
                    return
                health.closed(reason)
                _CLOSED.inc()
                _logger.error("closed: a promise would break", reason=reason)
            stopped.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_RETRY_S):
                await stop.wait()


async def _stopped_or_unsafe(stopped: "asyncio.Future[Any]", health: Health) -> str | None:
    """Return None once we are told to stop, or before that what would break a promise."""
    while True:
        await asyncio.wait([stopped], timeout=health.recheck_s)
        if stopped.done():
            return None
        if reason := await health.unsafe():
            return reason


def serve(
    app: Starlette,
    service: str,
    settings: ServiceSettings,
    *,
    http: type[LeavingProtocol] = LeavingProtocol,
    tracer: Tracer | None = None,
) -> None:
    """Run the application until the process is told to stop, then within `grace_s` no longer.

    `http` may be a subclass, for who must reach the connection itself.
    """
    log.configure(service, settings.log_level, None if tracer is None else tracer.current)
    # What is there by now stays for ever; it need not be looked through again and again.
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_LOOKS)
    uvicorn.run(
        app if tracer is None else TracedApp(app, tracer),
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http=http,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, int(settings.grace_s)),
    )
