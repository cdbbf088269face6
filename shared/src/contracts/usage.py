"""Usage by token class, and the price that turns it into money."""

from decimal import Decimal
from typing import Annotated

import msgspec

from contracts.contract import Message

TokenCount = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""As many tokens as the database can count."""

MOST_USD_PER_MILLION = Decimal(1_000_000)
"""At a billion tokens of a class, the most a record may hold, a debit still fits 64 bits of
nano-USD."""


class Usage(Message, frozen=True, kw_only=True):
    """What one attempt used, in tokens, each token counted in exactly one class.

    `input` excludes cached input; `output` includes reasoning where the provider reports it so,
    and `reasoning` holds only what a provider reports outside its output.
    """

    input: TokenCount = 0
    cache_read: TokenCount = 0
    cache_write_5m: TokenCount = 0
    cache_write_1h: TokenCount = 0
    output: TokenCount = 0
    reasoning: TokenCount = 0

    @property
    def total(self) -> int:
        """All tokens of the attempt: what the TPM limit counts."""
        return (
            self.input
            + self.cache_read
            + self.cache_write_5m
            + self.cache_write_1h
            + self.output
            + self.reasoning
        )


class UsdPerMillion(Message, frozen=True, kw_only=True):
    """USD per million tokens of each class; exact decimals, strings in JSON."""

    input: Decimal
    cache_read: Decimal
    cache_write_5m: Decimal
    cache_write_1h: Decimal
    output: Decimal
    reasoning: Decimal

    @property
    def is_possible(self) -> bool:
        """Whether a debit can be calculated with it; what isn't possible prices nothing."""
        amounts = msgspec.structs.astuple(self)
        return all(each.is_finite() and 0 <= each <= MOST_USD_PER_MILLION for each in amounts)


class Price(Message, frozen=True, kw_only=True):
    """One version of the price of a provider's model. Never edited; a change is a new version."""

    price_id: str
    provider: str
    model: str
    usd_per_million: UsdPerMillion
    effective_from_us: int
    """Unix microseconds; whoever pins a price compares it with its own wall clock."""
