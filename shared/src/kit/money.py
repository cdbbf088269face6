"""Exact arithmetic on money: Decimal in USD, integers in nano-USD (10⁻⁹ USD). Never a float.

InexactAmountError: an operation would have lost a digit.

Python's own operators on Decimal, even the unary minus, silently round to 28 digits: money is only
calculated with the functions here, or by Postgres.
"""

import decimal
from decimal import Decimal

from kit.errors import KitError

NANO_USD_PER_USD = 10**9
TOKENS_PER_PRICE_UNIT = 10**6

# Wide enough for any amount this system can meet, and it raises where it would have to round.
_EXACT = decimal.Context(
    prec=1_000,
    Emax=999_999,
    Emin=-999_999,
    traps=[decimal.Inexact, decimal.InvalidOperation, decimal.Overflow, decimal.DivisionByZero],
)


class InexactAmountError(KitError):
    """An amount can't be represented exactly."""


def exact_sum(*amounts: Decimal) -> Decimal:
    """Return the exact sum of amounts.

    Raises:
        InexactAmountError: the sum has more than a thousand digits.

    """
    total = Decimal(0)
    try:
        for amount in amounts:
            total = _EXACT.add(total, amount)
    except (decimal.Inexact, decimal.InvalidOperation) as error:
        raise InexactAmountError from error
    return total


def exact_product(amount: Decimal, factor: Decimal) -> Decimal:
    """Return the exact product of two amounts.

    Raises:
        InexactAmountError: the product has more than a thousand digits.

    """
    try:
        return _EXACT.multiply(amount, factor)
    except (decimal.Inexact, decimal.InvalidOperation) as error:
        raise InexactAmountError from error


def negated(amount_usd: Decimal) -> Decimal:
    """Return −amount; the unary minus of Decimal would round to 28 digits."""
    return amount_usd.copy_negate()


def tokens_cost_usd(tokens: int, usd_per_million: Decimal) -> Decimal:
    """Return the exact price of tokens: tokens × USD per million ÷ 10⁶, which only moves the point.

    Raises:
        InexactAmountError: the product has more than a thousand digits.

    """
    try:
        return _EXACT.multiply(Decimal(tokens), usd_per_million).scaleb(-6, _EXACT)
    except (decimal.Inexact, decimal.InvalidOperation) as error:
        raise InexactAmountError from error


def ceil_nano_usd(amount_usd: Decimal) -> int:
    """Return USD as nano-USD, rounded up: a debit is never too small."""
    return int(_scaled(amount_usd).to_integral_value(rounding=decimal.ROUND_CEILING))


def floor_nano_usd(amount_usd: Decimal) -> int:
    """Return USD as nano-USD, rounded down: a cached balance is never too large."""
    return int(_scaled(amount_usd).to_integral_value(rounding=decimal.ROUND_FLOOR))


def usd_from_nano(amount_nano_usd: int) -> Decimal:
    """Return nano-USD as exact USD."""
    return Decimal(amount_nano_usd).scaleb(-9, _EXACT)


def format_usd(amount_usd: Decimal) -> str:
    """Return an amount as a plain decimal string: no exponent, no trailing zeros, no `-0`."""
    text = format(amount_usd, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _scaled(amount_usd: Decimal) -> Decimal:
    return amount_usd.scaleb(9, _EXACT)
