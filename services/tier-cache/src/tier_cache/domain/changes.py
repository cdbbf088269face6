"""What a change event means for a team's keys in Redis."""

from decimal import Decimal, DecimalException

import msgspec

from contracts.contract import Event, decode
from contracts.control import ACCOUNT_ADJUSTED, TIER_CHANGED, AccountAdjusted, TierChanged
from kit.money import InexactAmountError, exact_sum, floor_nano_usd, usd_from_nano
from tier_cache.errors import UnreadableChangeError

# Redis moves money in signed 64-bit integers of nano-USD.
_MOST_USD = usd_from_nano(2**63 - 1)


class TierEviction(msgspec.Struct, frozen=True):
    """Forget a tier mapping that is older than `version`, the team's tier version."""

    team_id: str
    version: int


class BalanceMove(msgspec.Struct, frozen=True):
    """Move the cached balance by a posting that raised the account to `version`."""

    team_id: str
    delta_nano_usd: int
    version: int


Change = TierEviction | BalanceMove


def read(subject: str, payload: bytes) -> Change:
    """Return what an event asks for.

    Raises:
        UnreadableChangeError: not an event of ours, or not its message.

    """
    try:
        if _is(TIER_CHANGED, subject):
            changed = decode(payload, TierChanged)
            return TierEviction(changed.team_id, changed.version)
        if _is(ACCOUNT_ADJUSTED, subject):
            adjusted = decode(payload, AccountAdjusted)
            _check(adjusted.amount_usd)
            _check(adjusted.balance_usd)
            delta_nano_usd = cached_move_nano_usd(adjusted.amount_usd, adjusted.balance_usd)
            return BalanceMove(adjusted.team_id, delta_nano_usd, adjusted.version)
    except (msgspec.MsgspecError, InexactAmountError, DecimalException) as error:
        raise UnreadableChangeError(str(error)) from error
    raise UnreadableChangeError("a subject that nobody asked for")


def cached_move_nano_usd(amount_usd: Decimal, balance_usd: Decimal) -> int:
    """Return by how much a cached balance moves with a posting of `amount_usd` (signed).

    `balance_usd` is the settled balance after it. The cache holds balances rounded down, so it
    moves by the difference of the two rounded balances; the rounded amount could be off by one.
    """
    before_usd = exact_sum(balance_usd, amount_usd.copy_negate())
    return floor_nano_usd(balance_usd) - floor_nano_usd(before_usd)


def _check(amount_usd: Decimal) -> None:
    if not amount_usd.is_finite() or amount_usd.copy_abs() > _MOST_USD:
        raise UnreadableChangeError("an amount that Redis can't hold")


def _is(event: Event[TierChanged] | Event[AccountAdjusted], subject: str) -> bool:
    return subject.rpartition(".")[0] == event.wildcard.rpartition(".")[0]
