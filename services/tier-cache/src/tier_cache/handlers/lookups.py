"""Lookups: keys, policies and prices, read from the database each time.

Concurrent lookups of one key don't share an answer: who asks after a revocation was announced must
not be given what was read before it. The edge keeps keys, admission keeps policies and prices.
"""

from prometheus_client import Counter

from contracts.cache import (
    KeyResolveReply,
    KeyResolveRequest,
    PoliciesReply,
    PoliciesRequest,
    PricesReply,
    PricesRequest,
)
from contracts.errors import ErrorCode
from kit import log
from kit.bus.serving import ReplyError
from tier_cache.errors import DatabaseUnavailableError, ImpossibleLimitsError
from tier_cache.handlers.failures import unavailable
from tier_cache.store.database import Database

_logger = log.get(__name__)
_IMPOSSIBLE = Counter(
    "quotagate_tier_cache_impossible_total",
    "Times a tier, a key or a price was read that can't be; whoever needs it is refused.",
    ["kind"],
)


class Lookups:
    """Answers lookups; every method raises ReplyError when the database doesn't answer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def resolve_key(self, request: KeyResolveRequest) -> KeyResolveReply:
        """Tell what the database knows of a key."""
        try:
            return KeyResolveReply(key=await self._database.key(request.key_id))
        except ImpossibleLimitsError as error:
            _found_impossible("key", request.key_id, str(error))
            raise ReplyError(ErrorCode.IMPOSSIBLE_LIMITS) from error
        except DatabaseUnavailableError as error:
            raise unavailable("key", error) from error

    async def policies(self, _request: PoliciesRequest) -> PoliciesReply:
        """List every tier's policy. A tier that can't have one keeps nobody from the others."""
        try:
            policies, impossible = await self._database.policies()
        except DatabaseUnavailableError as error:
            raise unavailable("policies", error) from error
        for tier_id, problem in impossible.items():
            _found_impossible("tier", tier_id, problem)
        return PoliciesReply(policies=policies, impossible=impossible)

    async def prices(self, _request: PricesRequest) -> PricesReply:
        """List the prices in effect and those to come.

        Those that can't be are among them: what they say must not be priced as it was before them.
        """
        try:
            prices = await self._database.prices()
        except DatabaseUnavailableError as error:
            raise unavailable("prices", error) from error
        for price in prices:
            if not price.usd_per_million.is_possible:
                problem = f"{price.provider} {price.model}: no debit can be calculated with it"
                _found_impossible("price", price.price_id, problem)
        return PricesReply(prices=prices)


def _found_impossible(kind: str, name: str, problem: str) -> None:
    _IMPOSSIBLE.labels(kind).inc()
    _logger.error("stored past the control plane, and impossible", kind=kind, id=name, why=problem)
