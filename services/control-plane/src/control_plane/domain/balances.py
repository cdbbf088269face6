"""Which balances are possible."""

from decimal import Decimal

from control_plane.domain.errors import InvalidError

# The balance cache holds nano-USD in 64 bits, ±9.22 × 10⁹ USD.
MAX_BALANCE_USD = Decimal(9_000_000_000)


def check(balance_usd: Decimal) -> None:
    """See that a balance after a credit or an adjustment still fits the balance cache.

    Raises:
        InvalidError: names the field `amount`.

    """
    if not -MAX_BALANCE_USD <= balance_usd <= MAX_BALANCE_USD:
        raise InvalidError(
            "amount: the balance would leave ±9,000,000,000 USD, what the balance cache can hold.",
            field="amount",
        )
