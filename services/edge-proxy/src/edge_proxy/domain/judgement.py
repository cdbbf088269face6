"""In which order a request is judged: authenticate → route and model → price → balance → limits.

The first is :mod:`edge_proxy.handlers.authenticate`'s; price, balance and limits are decided by
admission, whose reply is put into words here.
"""

from contracts.admission import Decision, LimitReason, PreflightReply, Refusal
from contracts.spend import SpendPeriod, SpendScope
from contracts.usage import Price
from contracts.windows import WindowsReply
from edge_proxy.domain.endpoints import Endpoint
from edge_proxy.domain.inference import Caller, Leg
from edge_proxy.domain.problems import (
    BALANCE_NEGATIVE,
    CHECK_UNAVAILABLE,
    CONCURRENCY_LIMITED,
    DAY_REQUESTS_LIMITED,
    DAY_TOKENS_LIMITED,
    ENDPOINT_LIMITED,
    KEY_RATE_LIMITED,
    MODEL_RATE_LIMITED,
    NEVER_ADMISSIBLE,
    RATE_LIMITED,
    Problem,
    model_not_allowed,
    model_not_found,
    model_not_priced,
    spend_limit_reached,
    unsupported_endpoint,
)
from edge_proxy.domain.ratelimit_headers import (
    rate_limit_headers,
    retry_headers,
    rfc3339,
    shadow_header,
)
from edge_proxy.domain.reasons import HEADER as REASON_HEADER
from edge_proxy.domain.routes import Route, Routes
from kit.money import format_usd, usd_from_nano

_PROBLEMS = {
    LimitReason.KEY_REQUESTS: KEY_RATE_LIMITED,
    LimitReason.KEY_TOKENS: KEY_RATE_LIMITED,
    LimitReason.MODEL_REQUESTS: MODEL_RATE_LIMITED,
    LimitReason.MODEL_TOKENS: MODEL_RATE_LIMITED,
    LimitReason.CONCURRENCY: CONCURRENCY_LIMITED,
    LimitReason.DAY_REQUESTS: DAY_REQUESTS_LIMITED,
    LimitReason.DAY_TOKENS: DAY_TOKENS_LIMITED,
    LimitReason.ENDPOINT: ENDPOINT_LIMITED,
}
"""The others are the team's limits per minute."""

_SPEND = {
    LimitReason.DAY_SPEND: (SpendScope.TEAM, SpendPeriod.DAY),
    LimitReason.MONTH_SPEND: (SpendScope.TEAM, SpendPeriod.MONTH),
    LimitReason.KEY_DAY_SPEND: (SpendScope.KEY, SpendPeriod.DAY),
    LimitReason.KEY_MONTH_SPEND: (SpendScope.KEY, SpendPeriod.MONTH),
}


def route_for(routes: Routes, endpoint: Endpoint, caller: Caller, model: str) -> Route | Problem:
    """Return the route of a model that the caller may use, as far as it serves an endpoint."""
    route = routes.models.get(model)
    if route is None:
        return model_not_found(model)
    if not caller.may_use(model):
        return model_not_allowed(model)
    if not route.serves(endpoint):
        return unsupported_endpoint(model, endpoint.path)
    # Admission must not admit for the price of a deployment that can't be called here.
    return route.at(endpoint)


def refusal(reply: PreflightReply, model: str) -> Problem | None:
    """Return what a client is told of admission's decision; None: it may call."""
    if reply.decision is Decision.ALLOWED:
        # Without these there is nothing to charge by: a decision of another release.
        return None if reply.policy is not None and any(reply.prices) else CHECK_UNAVAILABLE
    if reply.decision is Decision.MODEL_NOT_PRICED:
        return model_not_priced(model)
    if reply.decision is Decision.BALANCE_NEGATIVE:
        return BALANCE_NEGATIVE
    return _limited(reply)


def _limited(reply: PreflightReply) -> Problem:
    """Return what a client is told that a limit refused: which one, and what to do about it."""
    headers = shadow_header(reply.shadowed)
    if reply.limits is not None:
        headers |= rate_limit_headers(reply.limits)
    if reply.reason is not None:
        headers[REASON_HEADER] = reply.reason
    if reply.decision is Decision.NEVER_ADMISSIBLE:
        return NEVER_ADMISSIBLE.with_headers(headers)
    # Absent from an admission of an earlier release, which knew requests and tokens only.
    refusal = reply.refusal
    problem = RATE_LIMITED if refusal is None else _problem(refusal)
    problem = problem.with_headers(headers | retry_headers(reply.retry_after_us))
    return problem if refusal is None else problem.with_details(_details(refusal))


def _problem(refusal: Refusal) -> Problem:
    spend = _SPEND.get(refusal.reason)
    if spend is None:
        return _PROBLEMS.get(refusal.reason, RATE_LIMITED)
    return spend_limit_reached(*spend, _resets_at(refusal) or "the period's end")


def _details(refusal: Refusal) -> dict[str, str | int | None]:
    is_spend = refusal.reason in _SPEND
    details = {
        "reason": refusal.reason.value,
        "scope": refusal.scope.value,
        "limit": _usd(refusal.limit) if is_spend else refusal.limit,
        "used": _usd(refusal.used) if is_spend else refusal.used,
        "resets_at": _resets_at(refusal),
    }
    return details if refusal.window is None else {**details, "window": refusal.window}


def refused_by_windows(reply: WindowsReply) -> Problem | None:
    """Return what a caller is told whose request had no preflight; None: it may come."""
    refusal = reply.refusal
    if refusal is None:
        return None
    headers = {REASON_HEADER: refusal.reason.value, **retry_headers(reply.retry_after_us)}
    return ENDPOINT_LIMITED.with_headers(headers).with_details(_details(refusal))


def _usd(nano_usd: int) -> str:
    return format_usd(usd_from_nano(nano_usd))


def _resets_at(refusal: Refusal) -> str | None:
    return None if refusal.resets_at_us is None else rfc3339(refusal.resets_at_us)


def legs(route: Route, prices: tuple[Price | None, ...]) -> tuple[Leg, ...]:
    """Return where attempts may go, in order: the route's targets that have a price."""
    return tuple(
        Leg(target=target, price=price)
        for target, price in zip(route.targets, prices, strict=False)
        if price is not None
    )
