"""Endpoint policies where no preflight judges them: requests that are free, and strangers."""

from collections.abc import Mapping

from prometheus_client import Counter

from contracts.limits import LimitReason
from edge_proxy.domain.inference import Caller
from edge_proxy.domain.judgement import refused_by_windows
from edge_proxy.domain.policies import EndpointPolicy, Windows
from edge_proxy.domain.problems import CHECK_UNAVAILABLE, Problem
from edge_proxy.domain.ratelimit_headers import shadow_header, window_headers
from edge_proxy.handlers.edge import Edge
from kit import log
from kit.bus.errors import BusError

_logger = log.get(__name__)
_NOT_JUDGED = Counter(
    "quotagate_windows_not_judged_total",
    "Requests that nobody could judge by their endpoint's windows, by what the policy says then.",
    ["on_store_failure"],
)

_NOTHING: Mapping[str, str] = {}


async def judge_caller(
    edge: Edge, policy: EndpointPolicy, caller: Caller
) -> Mapping[str, str] | Problem:
    """Judge a request of a key; return the headers of its windows, or why it may not come."""
    if not policy.keys:
        return _NOTHING
    return await _judge(edge, policy.keys, team_id=caller.team_id, key_id=caller.key_id)


async def judge_address(
    edge: Edge, policy: EndpointPolicy, address: str
) -> Mapping[str, str] | Problem:
    """Judge a request without a valid key, likewise."""
    if not policy.addresses:
        return _NOTHING
    return await _judge(edge, policy.addresses, address=address)


async def _judge(edge: Edge, asked: Windows, **whose: str) -> Mapping[str, str] | Problem:
    try:
        reply = await edge.admission.judge_windows(asked.windows, **whose)
    except BusError as error:
        _NOT_JUDGED.labels("closed" if asked.closed else "open").inc()
        _logger.warning("windows not judged", error=type(error).__name__, closed=asked.closed)
        return CHECK_UNAVAILABLE if asked.closed else _NOTHING
    headers = window_headers(asked.windows, reply.uses)
    problem = refused_by_windows(reply)
    if problem is not None:
        return problem.with_headers(headers)
    if any(
        use.admits_at_us and window.shadow
        for window, use in zip(asked.windows, reply.uses, strict=False)
    ):
        headers |= shadow_header((LimitReason.ENDPOINT,))
    return headers
