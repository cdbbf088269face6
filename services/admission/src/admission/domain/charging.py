"""What an attempt's end does to every limit: the model of `lua/postflight.lua`.

Never refuses: an overshoot is a debt. What isn't counted yet isn't counted from here.
"""

from collections.abc import Sequence

import msgspec

from admission.domain.gcra import advanced
from admission.domain.limits import CountLimit, DebtLimit, LeaseLimit, Limit, SpendCap
from admission.domain.policy import cost_at
from admission.domain.tokens import CountedTokens, Tokens
from contracts.admission import LimitReason
from contracts.spend import SPEND_CEILING_NANO_USD


class End(msgspec.Struct, frozen=True):
    """An attempt's end: its tokens as they count per minute, and as they are; its rough debit."""

    counted: CountedTokens
    tokens: int
    shadowed: tuple[LimitReason, ...] = ()
    """Limits in shadow mode that would have refused it: they would not have had its tokens."""
    releases: bool = False
    """Whether a lease that is held ends with it."""
    debit_nano_usd: int = 0


def after(
    limits: Sequence[Limit], values: Sequence[int | None], end: End, now_us: int
) -> tuple[int | None, ...]:
    """Return the limits' values after an attempt's end; those of leases count all in flight."""
    return tuple(
        _after(limit, value, end, now_us) for limit, value in zip(limits, values, strict=True)
    )


def tokens_for(reason: LimitReason, end: End) -> Tokens:
    """Return the tokens that a limit per minute is charged."""
    if reason in end.shadowed:
        return 0
    if reason is LimitReason.INPUT_TOKENS:
        return end.counted.input
    return end.counted.output if reason is LimitReason.OUTPUT_TOKENS else end.counted.total


def added_to(reason: LimitReason, end: End) -> int:
    """Return what is added to a day's count."""
    return end.tokens if reason is LimitReason.DAY_TOKENS else 0


def _after(limit: Limit, value: int | None, end: End, now_us: int) -> int | None:
    match limit:
        case DebtLimit(reason, per_minute, 0):
            cost_us = cost_at(per_minute, tokens_for(reason, end))
            return advanced(now_us, value, cost_us) if cost_us else value
        case CountLimit(reason):
            return None if value is None else value + added_to(reason, end)
        case LeaseLimit():
            return (value or 0) - end.releases
        case SpendCap():
            return None if value is None else spent_after(value, end.debit_nano_usd)
    return value


def spent_after(spent_nano_usd: int, debit_nano_usd: int) -> int:
    """Return what was spent with a further debit; from the ceiling on it doesn't grow."""
    if spent_nano_usd >= SPEND_CEILING_NANO_USD or debit_nano_usd >= SPEND_CEILING_NANO_USD:
        return max(spent_nano_usd, SPEND_CEILING_NANO_USD)
    return spent_nano_usd + debit_nano_usd
