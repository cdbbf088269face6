"""What usage costs: the one formula behind the rough debit and the usage charge."""

from decimal import Decimal

from contracts.usage import Usage, UsdPerMillion
from kit.money import exact_sum, tokens_cost_usd


def usage_cost_usd(usage: Usage, price: UsdPerMillion) -> Decimal:
    """Return Σ tokens × USD per million ÷ 10⁶ over the token classes. Nothing is rounded.

    Raises:
        InexactAmountError: the amount has more than a thousand digits.

    """
    return exact_sum(
        *(
            tokens_cost_usd(tokens, usd_per_million)
            for tokens, usd_per_million in (
                (usage.input, price.input),
                (usage.cache_read, price.cache_read),
                (usage.cache_write_5m, price.cache_write_5m),
                (usage.cache_write_1h, price.cache_write_1h),
                (usage.output, price.output),
                (usage.reasoning, price.reasoning),
            )
            if tokens
        )
    )
