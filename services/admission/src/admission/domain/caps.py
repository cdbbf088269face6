"""The longest debts that can be explained by what teams did.

A TAT further ahead means that the Redis server's clock was stepped back under it. It is judged as
the longest debt, counted and alarmed, so that a team isn't locked out for as long as the step was.

A change of tier keeps the TATs, so a debt may come from a slower tier than today's. The floors
leave room for that; they are long, because a debt that is real must never be forgiven.
"""

from admission.domain.policy import cost_us, interval_us, request_burst_us
from contracts.admission import Policy

_DAY_US = 24 * 3_600 * 1_000_000
REQUEST_FLOOR_US = _DAY_US
TOKEN_FLOOR_US = 30 * _DAY_US
# More than all attempts in flight of one team can use at once.
TOKENS_AT_ONCE = 1_000_000_000
# A TAT must stay below 2**53 µs to be exact in a script; this is 142 years ahead.
CEILING_US = 2**52


def longest_request_debt_us(policy: Policy) -> int:
    """Return the debt right after the last request that the burst admits, or the floor."""
    return min(CEILING_US, max(REQUEST_FLOOR_US, request_burst_us(policy) + interval_us(policy)))


def longest_token_debt_us(policy: Policy) -> int:
    """Return the cost of a thousand million tokens in this tier, or the floor."""
    return min(CEILING_US, max(TOKEN_FLOOR_US, cost_us(policy, TOKENS_AT_ONCE)))
