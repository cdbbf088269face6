"""GCRA with two independent theoretical arrival times (TATs): one for requests, one for tokens.

These two every tier has; `domain/decision.py` puts its further limits beside them. The same
arithmetic as `lua/preflight.lua` and `lua/postflight.lua`, for reading, for testing them, and for
explaining an answer of theirs. All times are integer microseconds of the Redis clock. A TAT is the
instant at which a debt is paid off; None means that there is no debt.
"""

from enum import StrEnum

import msgspec

from admission.domain.policy import (
    cost_us,
    interval_us,
    remaining_requests,
    remaining_tokens,
    request_burst_us,
    token_burst_us,
)
from contracts.admission import LimitState, Policy


class Limit(StrEnum):
    """What a refused request waits for."""

    REQUESTS = "requests"
    TOKENS = "tokens"


class Admitted(msgspec.Struct, frozen=True):
    """The request may go; its interval is in the request TAT. The token TAT doesn't move."""

    request_tat_us: int


class Limited(msgspec.Struct, frozen=True):
    """The request may not go and nothing moved.

    `limited_by` is the limit with the longer wait, and `retry_after_us` that wait: after it both
    limits would admit, if nothing else is charged meanwhile. Equal waits count as requests.
    """

    limited_by: Limit
    retry_after_us: int


def debt_us(now_us: int, tat_us: int | None) -> int:
    """Return how far the TAT lies ahead of now; a TAT in the past is no credit."""
    return 0 if tat_us is None else max(0, tat_us - now_us)


def advanced(now_us: int, tat_us: int | None, by_us: int) -> int:
    """Return max(TAT, now) + `by_us`."""
    return now_us + debt_us(now_us, tat_us) + by_us


def preflight(
    policy: Policy, now_us: int, request_tat_us: int | None, token_tat_us: int | None
) -> Admitted | Limited:
    """Decide one request: admitted when both TATs, less the tier's bursts, are not after now."""
    request_wait_us = debt_us(now_us, request_tat_us) - request_burst_us(policy)
    token_wait_us = debt_us(now_us, token_tat_us) - token_burst_us(policy)
    if request_wait_us <= 0 and token_wait_us <= 0:
        return Admitted(advanced(now_us, request_tat_us, interval_us(policy)))
    if token_wait_us > request_wait_us:
        return Limited(Limit.TOKENS, token_wait_us)
    return Limited(Limit.REQUESTS, request_wait_us)


def postflight(policy: Policy, now_us: int, token_tat_us: int | None, tokens: int) -> int | None:
    """Return the token TAT after a usage of `tokens`: never refused, never forgiven.

    No tokens move nothing, so None (no debt) stays None.
    """
    if tokens == 0:
        return token_tat_us
    return advanced(now_us, token_tat_us, cost_us(policy, tokens))


def limit_state(
    policy: Policy, now_us: int, request_tat_us: int | None, token_tat_us: int | None
) -> LimitState:
    """Return what the rate-limit headers tell: limits, what remains of them, and the debts."""
    request_debt_us = debt_us(now_us, request_tat_us)
    token_debt_us = debt_us(now_us, token_tat_us)
    return LimitState(
        limit_requests=policy.rpm,
        remaining_requests=remaining_requests(policy, request_debt_us),
        reset_requests_us=request_debt_us,
        limit_tokens=policy.tpm,
        remaining_tokens=remaining_tokens(policy, token_debt_us),
        reset_tokens_us=token_debt_us,
    )
