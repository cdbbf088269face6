"""How much a usage counts against the limits of tokens per minute."""

from fractions import Fraction

import msgspec

from contracts.admission import TokenWeights
from contracts.usage import Usage

Tokens = int | Fraction


class CountedTokens(msgspec.Struct, frozen=True):
    """The tokens of a usage, each with its class's weight; exact, so they may be fractions."""

    input: Tokens
    """Cached input included."""
    output: Tokens
    """Reasoning included."""

    @property
    def total(self) -> Tokens:
        """Return input and output together."""
        return self.input + self.output


def counted(usage: Usage, weights: TokenWeights | None) -> CountedTokens:
    """Return a usage's tokens by these weights; None: each token is one."""
    if weights is None:
        output = usage.output + usage.reasoning
        return CountedTokens(usage.total - output, output)
    return CountedTokens(
        Fraction(weights.input) * usage.input
        + Fraction(weights.cache_read) * usage.cache_read
        + Fraction(weights.cache_write_5m) * usage.cache_write_5m
        + Fraction(weights.cache_write_1h) * usage.cache_write_1h,
        Fraction(weights.output) * usage.output + Fraction(weights.reasoning) * usage.reasoning,
    )


def heaviest(weights: TokenWeights | None) -> Tokens:
    """Return the largest weight, at least 1."""
    if weights is None:
        return 1
    return max(Fraction(1), *(Fraction(weight) for weight in msgspec.structs.astuple(weights)))
