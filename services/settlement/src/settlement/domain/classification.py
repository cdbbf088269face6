"""What becomes of a record: charged, kept as unknown spend, or held for a person."""

from dataclasses import dataclass
from enum import StrEnum

from contracts.inference import InferenceRecord
from contracts.usage import Usage


class HeldReason(StrEnum):
    """Why a person must look at a record before it is charged."""

    ABSURD_USAGE = "absurd_usage"
    """A token class beyond what any model can use in one attempt."""
    MISSING_PRICE = "missing_price"
    """No price is pinned, or there is no such price."""
    UNPRICEABLE = "unpriceable"
    """The exact amount has more digits than we calculate with."""
    UNKNOWN_TEAM = "unknown_team"
    """There is no such team, and so no account to charge."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Has usage, waits for its charge."""


@dataclass(frozen=True, slots=True)
class Unbillable:
    """Has no usage: unknown spend, never charged."""


@dataclass(frozen=True, slots=True)
class Held:
    """Kept for a person."""

    reason: HeldReason


Class = Pending | Unbillable | Held

_PENDING = Pending()
_UNBILLABLE = Unbillable()


def classify(record: InferenceRecord, max_class_tokens: int) -> Class:
    """Decide what becomes of a record.

    Only what a provider reported is charged, whatever the outcome was; a missing usage is never
    taken for zero. More than `max_class_tokens` in one class is held.
    """
    if record.usage is None:
        return _UNBILLABLE
    if _largest_class(record.usage) > max_class_tokens:
        return Held(HeldReason.ABSURD_USAGE)
    if record.price_id is None:
        return Held(HeldReason.MISSING_PRICE)
    return _PENDING


def _largest_class(usage: Usage) -> int:
    """Return the tokens of the class that has most."""
    return max(
        usage.input,
        usage.cache_read,
        usage.cache_write_5m,
        usage.cache_write_1h,
        usage.output,
        usage.reasoning,
    )
