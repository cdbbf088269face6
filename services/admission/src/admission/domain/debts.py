"""The longest debts that usage can explain; a longer one comes from a stepped clock.

The Redis clock can be set back under a TAT, which then lies ahead for as long as the step was.
Such a debt is cut to the longest explicable one, which must lie far above any real debt: a real
one is never forgiven.
"""

from collections.abc import Iterable, Iterator

import msgspec

from admission.domain.policy import cost_at, interval_us, rate_bursts_us, request_burst_us
from admission.domain.tokens import heaviest
from contracts.admission import Policy, Rates

# Whatever the tiers of today are: a debt may come from one that was slower not long ago.
_FLOOR_US = 24 * 3_600_000_000
# A Redis script calculates with doubles, exact below 2⁵³; now and the longest debt must fit in.
_MOST_US = 2**52


class LongestDebts(msgspec.Struct, frozen=True):
    """Microseconds each TAT can lie ahead of now by usage."""

    request_us: int = _FLOOR_US
    token_us: int = _FLOOR_US

    def or_longer(self, other: "LongestDebts") -> "LongestDebts":
        """Return the longer debt of each kind."""
        return LongestDebts(
            max(self.request_us, other.request_us), max(self.token_us, other.token_us)
        )


def longest_debts(policies: Iterable[Policy], explicable_tokens: int) -> LongestDebts:
    """Return the longest debts under the slowest of these policies, at least a day each.

    Of requests: a full burst and the request after it. Of tokens: `explicable_tokens`, what calls
    in flight could use together. The slowest, because a team may bring its debt from any tier.
    """
    longest = LongestDebts()
    for policy in policies:
        requests_us = max(_request_debts_us(policy))
        slowest_tpm = min(_tokens_per_minute(policy))
        tokens_us = cost_at(slowest_tpm, explicable_tokens * heaviest(policy.tpm_weights))
        longest = longest.or_longer(
            LongestDebts(min(_MOST_US, requests_us), min(_MOST_US, tokens_us))
        )
    return longest


def _request_debts_us(policy: Policy) -> Iterator[int]:
    """Return the debts of a full burst and the request after it, of each limit of requests."""
    yield request_burst_us(policy) + interval_us(policy)
    for rates in _all_rates(policy):
        if rates.rpm is not None:
            yield rate_bursts_us(rates)[0] + cost_at(rates.rpm, 1)


def _tokens_per_minute(policy: Policy) -> Iterator[int]:
    """Return the policy's every limit of tokens per minute."""
    rates = (each.tpm for each in _all_rates(policy))
    for limit in (policy.tpm, policy.input_tpm, policy.output_tpm, *rates):
        if limit is not None:
            yield limit


def _all_rates(policy: Policy) -> Iterator[Rates]:
    if policy.key_rates is not None:
        yield policy.key_rates
    yield from policy.model_rates.values()
