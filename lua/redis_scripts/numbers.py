"""Which numbers Redis and its scripts hold exactly, and how their replies are read."""

from contracts.spend import SPEND_CEILING_NANO_USD
from redis_scripts.errors import OutOfRangeError

# A Lua number is a double: integers are exact below this.
_EXACT_LIMIT = 2**53
# Redis moves money in signed 64-bit integers: about ±9.2 billion USD.
_MONEY_LIMIT = 2**63


def exact(number: int) -> int:
    """Let through what a script can calculate with."""
    if not 0 <= number < _EXACT_LIMIT:
        raise OutOfRangeError
    return number


def money(nano_usd: int) -> int:
    """Let through an amount that fits into 64 bits."""
    if not -_MONEY_LIMIT <= nano_usd < _MONEY_LIMIT:
        raise OutOfRangeError
    return nano_usd


def debit(nano_usd: int) -> int:
    """Let through an amount to be subtracted."""
    if nano_usd < 0:
        raise OutOfRangeError
    return money(nano_usd)


def integer(value: bytes | int | None) -> int | None:
    """Read an integer of a reply; None: missing."""
    return None if value is None else int(value)


def text(value: bytes | None) -> str | None:
    """Read a text of a reply; None: missing."""
    return None if value is None else value.decode()


def spend(nano_usd: int) -> int:
    """Return spend as it is counted: never more than the ceiling."""
    if nano_usd < 0:
        raise OutOfRangeError
    return min(nano_usd, SPEND_CEILING_NANO_USD)


def spend_limit(nano_usd: int) -> int:
    """Let through a limit that spend can reach."""
    if not 0 <= nano_usd < SPEND_CEILING_NANO_USD:
        raise OutOfRangeError
    return nano_usd
