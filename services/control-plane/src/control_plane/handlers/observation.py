"""Counts, times and logs every admin request, and answers for what nobody expected."""

import time
from http import HTTPStatus

from fastapi.routing import APIRoute
from prometheus_client import Counter, Histogram
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kit import log
from kit.metrics import LATENCY_BUCKETS_S

_logger = log.get(__name__)
_METHODS = frozenset({"GET", "POST", "PUT", "DELETE"})
_REQUESTS = Counter(
    "quotagate_control_plane_requests_total",
    "Admin requests by route template, method and status.",
    ["method", "route", "status"],
)
_SECONDS = Histogram(
    "quotagate_control_plane_request_seconds",
    "Seconds from an admin request's head to its answer.",
    ["method", "route"],
    buckets=LATENCY_BUCKETS_S,
)


class Observation:
    """The outermost layer around the gate and the admin API."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        started_s = time.perf_counter()
        status = 0  # no answer went out

        async def observe(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                # Answers hold balances and, once, a key: nothing for a cache on the way.
                MutableHeaders(scope=message)["Cache-Control"] = "no-store"
            await send(message)

        try:
            await self._app(scope, receive, observe)
        except Exception as error:
            # The outermost loop of a request: the answer went out, the error ends here.
            _logger.exception("admin request failed", error=type(error).__name__)
        seconds = time.perf_counter() - started_s
        method = scope["method"] if scope["method"] in _METHODS else "other"
        route = _template(scope)
        _REQUESTS.labels(method, route, str(status)).inc()
        _SECONDS.labels(method, route).observe(seconds)
        _logger.info(
            "admin request",
            method=method,
            route=route,
            **_ids(scope, status),
            status=status,
            duration_ms=round(seconds * 1_000, 3),
        )


def _ids(scope: Scope, status: int) -> dict[str, str]:
    """Return the ids in the address, once they proved to be ids: people paste keys there."""
    answered = 0 < status < HTTPStatus.BAD_REQUEST
    ids: dict[str, str] = scope.get("path_params", {}) if answered else {}
    return ids


def _template(scope: Scope) -> str:
    """Return the template of the route that ran: a closed set, whatever was asked for."""
    route = scope.get("route")
    return route.path if isinstance(route, APIRoute) else "none"
