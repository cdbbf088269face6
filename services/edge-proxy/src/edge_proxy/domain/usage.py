"""What a provider said about an attempt's usage, and how far it can be believed."""

from dataclasses import dataclass
from enum import StrEnum

from contracts.inference import UsageSource
from contracts.usage import Usage

ABSURD_TOKENS = 10**9
"""More tokens in one class than any call uses: a person judges them, no limit and no balance."""

_MAX_REPORTED_CHARS = 16_384
_MAX_RECORDED_TOKENS = 2**53


class Verdict(StrEnum):
    """How far what was reported can be used."""

    FOUND = "found"
    MISSING = "missing"
    """Nothing was reported: unknown spend, never zero."""
    UNREADABLE = "unreadable"
    """Something was reported, but not counts of tokens."""
    ABSURD = "absurd"
    """Counts, but beyond what one call can use."""


@dataclass(frozen=True, slots=True)
class UsageReading:
    """The usage of one attempt."""

    verdict: Verdict
    usage: Usage | None = None
    reported: str | None = None
    """The provider's own words, as JSON."""

    @property
    def chargeable(self) -> Usage | None:
        """What the token limit and the balance may be charged with now."""
        return self.usage if self.verdict is Verdict.FOUND else None

    @property
    def source(self) -> UsageSource:
        """Where the record says its usage comes from."""
        return UsageSource.MISSING if self.usage is None else UsageSource.PROVIDER


NO_USAGE = UsageReading(Verdict.MISSING)


def reading(usage: Usage | None, reported: bytes) -> UsageReading:
    """Judge what was reported; `usage` None: it couldn't be read as counts."""
    words = reported.decode("utf-8", "replace")[:_MAX_REPORTED_CHARS]
    if usage is None:
        return UsageReading(Verdict.UNREADABLE, reported=words)
    most = max(
        usage.input,
        usage.cache_read,
        usage.cache_write_5m,
        usage.cache_write_1h,
        usage.output,
        usage.reasoning,
    )
    if most > ABSURD_TOKENS:
        kept = usage if most <= _MAX_RECORDED_TOKENS else None
        return UsageReading(Verdict.ABSURD, usage=kept, reported=words)
    return UsageReading(Verdict.FOUND, usage=usage, reported=words)
