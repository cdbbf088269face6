"""A tier's numbers as times: what one request and one token cost, and what a burst forgives.

All division is of integers and rounds up, so a limit is never exceeded by rounding.
"""

from contracts.admission import Policy

MINUTE_US = 60_000_000


def _ceil_div(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)


def interval_us(policy: Policy) -> int:
    """Return what one request costs: 60,000,000 / RPM microseconds, rounded up."""
    return _ceil_div(MINUTE_US, policy.rpm)


def cost_us(policy: Policy, tokens: int) -> int:
    """Return what that many tokens cost: tokens * 60,000,000 / TPM microseconds, rounded up."""
    return _ceil_div(tokens * MINUTE_US, policy.tpm)


def request_burst_us(policy: Policy) -> int:
    """Return the request debt within which requests are still admitted, in whole intervals."""
    return policy.request_burst * interval_us(policy)


def token_burst_us(policy: Policy) -> int:
    """Return the token debt within which requests are still admitted: the burst's own cost."""
    return cost_us(policy, policy.token_burst)


def remaining_requests(policy: Policy, debt_us: int) -> int:
    """Return how many requests RPM alone would admit one after the other in this instant.

    Each admitted request adds an interval to the debt, and the next is admitted while the debt
    is within the burst.
    """
    room_us = request_burst_us(policy) - debt_us
    return 0 if room_us < 0 else room_us // interval_us(policy) + 1


def remaining_tokens(policy: Policy, debt_us: int) -> int:
    """Return max(0, TPM - debt_us * TPM / 60,000,000), the debt's tokens rounded up."""
    return max(0, policy.tpm - _ceil_div(debt_us * policy.tpm, MINUTE_US))
