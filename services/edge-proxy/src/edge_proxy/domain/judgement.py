"""In which order a request is judged: authenticate → route and model → price → balance → limits.

The first is :mod:`edge_proxy.handlers.authenticate`'s; price, balance and limits are decided by
admission, whose reply is put into words here.
"""

from contracts.admission import Decision, PreflightReply
from contracts.usage import Price
from edge_proxy.domain.endpoints import Endpoint
from edge_proxy.domain.inference import Caller, Leg
from edge_proxy.domain.problems import (
    BALANCE_NEGATIVE,
    CHECK_UNAVAILABLE,
    RATE_LIMITED,
    Problem,
    model_not_allowed,
    model_not_found,
    model_not_priced,
)
from edge_proxy.domain.ratelimit_headers import rate_limit_headers, retry_headers
from edge_proxy.domain.routes import Route, Routes


def route_for(routes: Routes, endpoint: Endpoint, caller: Caller, model: str) -> Route | Problem:
    """Return the route of a model that the caller may use at an endpoint."""
    route = routes.models.get(model)
    if route is None or not route.serves(endpoint):
        return model_not_found(model)
    if not caller.may_use(model):
        return model_not_allowed(model)
    return route


def refusal(reply: PreflightReply, model: str) -> Problem | None:
    """Return what a client is told of admission's decision; None: it may call."""
    if reply.decision is Decision.ALLOWED:
        # Without these there is nothing to charge by: a decision of another release.
        return None if reply.policy is not None and any(reply.prices) else CHECK_UNAVAILABLE
    if reply.decision is Decision.MODEL_NOT_PRICED:
        return model_not_priced(model)
    if reply.decision is Decision.BALANCE_NEGATIVE:
        return BALANCE_NEGATIVE
    headers = retry_headers(reply.retry_after_us)
    if reply.limits is not None:
        headers |= rate_limit_headers(reply.limits)
    if reply.reason is not None:
        headers["x-ratelimit-reason"] = reply.reason
    return RATE_LIMITED.with_headers(headers)


def legs(route: Route, endpoint: Endpoint, prices: tuple[Price | None, ...]) -> tuple[Leg, ...]:
    """Return where attempts may go, in order: the route's targets that have a price."""
    return tuple(
        Leg(target=target, price=price)
        for target, price in zip(route.targets, prices, strict=False)
        if price is not None and endpoint.path in target.provider.adapter.paths
    )
