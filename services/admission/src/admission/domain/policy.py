"""A tier's numbers as times: what one request and one token cost, and what a burst forgives.

All division is of integers and rounds up, so a limit is never exceeded by rounding.
"""

from admission.domain.tokens import Tokens
from contracts.admission import Policy, Rates

MINUTE_US = 60_000_000


def _ceil_div(dividend: Tokens, divisor: int) -> int:
    return -(-dividend // divisor)


def cost_at(per_minute: int, units: Tokens) -> int:
    """Return what requests or tokens cost: units * 60,000,000 / limit microseconds, rounded up."""
    return _ceil_div(units * MINUTE_US, per_minute)


def units_at(per_minute: int, debt_us: int) -> int:
    """Return how many requests or tokens a debt stands for, rounded up."""
    return _ceil_div(debt_us * per_minute, MINUTE_US)


def interval_us(policy: Policy) -> int:
    """Return what one request costs: 60,000,000 / RPM microseconds, rounded up."""
    return cost_at(policy.rpm, 1)


def cost_us(policy: Policy, tokens: Tokens) -> int:
    """Return what that many tokens cost: tokens * 60,000,000 / TPM microseconds, rounded up."""
    return cost_at(policy.tpm, tokens)


def request_burst_us(policy: Policy) -> int:
    """Return the request debt within which requests are still admitted, in whole intervals."""
    return policy.request_burst * interval_us(policy)


def token_burst_us(policy: Policy) -> int:
    """Return the token debt within which requests are still admitted: the burst's own cost."""
    return cost_us(policy, policy.token_burst)


def rate_bursts_us(rates: Rates) -> tuple[int, int]:
    """Return the bursts of a key's or a model's rates, of requests and of tokens, as above.

    One without its limit is nothing.
    """
    return (
        rates.request_burst * cost_at(rates.rpm, 1) if rates.rpm is not None else 0,
        cost_at(rates.tpm, rates.token_burst) if rates.tpm is not None else 0,
    )


def remaining_requests(policy: Policy, debt_us: int) -> int:
    """Return how many requests RPM alone would admit one after the other in this instant.

    Each admitted request adds an interval to the debt, and the next is admitted while the debt
    is within the burst.
    """
    room_us = request_burst_us(policy) - debt_us
    return 0 if room_us < 0 else room_us // interval_us(policy) + 1


def remaining_tokens(policy: Policy, debt_us: int) -> int:
    """Return max(0, TPM - debt_us * TPM / 60,000,000), the debt's tokens rounded up."""
    return remaining_at(policy.tpm, debt_us)


def remaining_at(per_minute: int, debt_us: int) -> int:
    """Return what a debt leaves of a limit per minute: max(0, limit - the debt's units)."""
    return max(0, per_minute - units_at(per_minute, debt_us))
