"""What both sides can be compared by."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from enum import StrEnum

Key = tuple[date, str]
"""A day (UTC) and a model."""

Totals = Mapping["Measure", Decimal]
"""What was measured of one key. A measure that a side doesn't tell is missing."""


class Measure(StrEnum):
    """A column of a provider's export, and what we hold against it."""

    REQUESTS = "requests"
    """Attempts whose usage the provider told us."""
    INPUT_TOKENS = "input_tokens"
    """All input: uncached, read from a cache and written to one."""
    UNCACHED_INPUT_TOKENS = "uncached_input_tokens"
    CACHED_TOKENS = "cached_tokens"
    """Input read from a cache."""
    CACHE_WRITE_TOKENS = "cache_write_tokens"
    """Input written to a cache, for five minutes or an hour."""
    OUTPUT_TOKENS = "output_tokens"
    """All output, reasoning included."""
    COST_USD = "cost_usd"
    """USD; ours are the usage charges."""
