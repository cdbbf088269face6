"""What an attempt costs at once: the rough debit."""

from contracts.usage import Usage, UsdPerMillion
from kit.money import ceil_nano_usd
from kit.pricing import usage_cost_usd


def rough_debit_nano_usd(usage: Usage, usd_per_million: UsdPerMillion) -> int:
    """Return the price of the usage in nano-USD (10⁻⁹ USD), exact and only then rounded up.

    Rounding the sum and not each class keeps the rough debit within one nano-USD of the charge
    that settlement takes later, and never below it.

    Raises:
        kit.money.InexactAmountError: the price has more digits than can be calculated exactly.

    """
    return ceil_nano_usd(usage_cost_usd(usage, usd_per_million))
