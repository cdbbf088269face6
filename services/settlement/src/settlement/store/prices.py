"""Prices in Postgres. A price is never edited, so what was read once stays right."""

import uuid
from collections.abc import Iterable

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.usage import UsdPerMillion
from settlement.domain.settling import Prices
from settlement.store.statements import statement
from tables.prices import TOKEN_CLASSES

_PRICES = statement("prices")


class PriceBook:
    """The prices that records pinned, kept in memory once they were needed."""

    def __init__(self) -> None:
        self._prices: dict[str, UsdPerMillion] = {}

    async def of(self, connection: AsyncConnection, price_ids: Iterable[str]) -> Prices:
        """Return the prices by id; one that doesn't exist is missing."""
        unknown = {
            parsed: price_id
            for price_id in set(price_ids) - self._prices.keys()
            if (parsed := _parsed(price_id)) is not None
        }
        if unknown:
            for row in await connection.execute(_PRICES, {"price_ids": list(unknown)}):
                self._prices[unknown[row.price_id]] = UsdPerMillion(
                    **{name: getattr(row, f"{name}_usd_per_million") for name in TOKEN_CLASSES}
                )
        return self._prices


def _parsed(price_id: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(price_id)
    except ValueError:
        return None
