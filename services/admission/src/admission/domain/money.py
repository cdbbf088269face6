"""What an attempt costs at once: the rough debit."""

from contracts.usage import Usage, UsdPerMillion
from kit.money import ceil_nano_usd, exact_sum, tokens_cost_usd


def rough_debit_nano_usd(usage: Usage, usd_per_million: UsdPerMillion) -> int:
    """Return the price of the usage in nano-USD (10⁻⁹ USD), exact and only then rounded up.

    Rounding the sum and not each class keeps the rough debit within one nano-USD of the charge
    that settlement takes later, and never below it.

    Raises:
        kit.money.InexactAmountError: the price has more digits than can be calculated exactly.

    """
    per_class = (
        (usage.input, usd_per_million.input),
        (usage.cache_read, usd_per_million.cache_read),
        (usage.cache_write_5m, usd_per_million.cache_write_5m),
        (usage.cache_write_1h, usd_per_million.cache_write_1h),
        (usage.output, usd_per_million.output),
        (usage.reasoning, usd_per_million.reasoning),
    )
    return ceil_nano_usd(
        exact_sum(*(tokens_cost_usd(tokens, price) for tokens, price in per_class if tokens))
    )
