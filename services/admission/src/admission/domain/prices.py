"""Which price version an inference pins: the one in effect for the deployment's model."""

import re
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Self

from contracts.admission import Deployment
from contracts.usage import Price

# `gpt-4o-2024-08-06`, `claude-3-haiku-20240307`, `claude-3-5-sonnet-latest`.
_SNAPSHOT = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)\Z")


def without_snapshot(model: str) -> str:
    """Return a model's name without the suffix that names a dated or the latest snapshot."""
    return _SNAPSHOT.sub("", model)


class PriceBook:
    """All known price versions, by provider and model. Never changes; a new one replaces it."""

    def __init__(self, versions: dict[tuple[str, str], Sequence[Price]]) -> None:
        self._versions = versions
        self._impossible = {
            price.price_id
            for each in versions.values()
            for price in each
            if not price.usd_per_million.is_possible
        }

    @classmethod
    def of(cls, prices: Iterable[Price]) -> Self:
        """Return a book of these versions, in any order."""
        versions: dict[tuple[str, str], list[Price]] = {}
        for price in sorted(prices, key=attrgetter("effective_from_us"), reverse=True):
            versions.setdefault((price.provider, price.model), []).append(price)
        return cls({key: tuple(found) for key, found in versions.items()})

    def pin(self, deployment: Deployment, now_us: int) -> Price | None:
        """Return the price in effect at `now_us` (unix µs, our wall clock); None: not priced.

        A snapshot without a price of its own costs what its model costs. A price that can't be
        prices nothing, and neither does the one before it.
        """
        found = self._in_effect(deployment.provider, deployment.model, now_us)
        family = without_snapshot(deployment.model)
        if found is None and family != deployment.model:
            found = self._in_effect(deployment.provider, family, now_us)
        return None if found is None or found.price_id in self._impossible else found

    def _in_effect(self, provider: str, model: str, now_us: int) -> Price | None:
        for price in self._versions.get((provider, model), ()):  # the latest first
            if price.effective_from_us <= now_us:
                return price
        return None
