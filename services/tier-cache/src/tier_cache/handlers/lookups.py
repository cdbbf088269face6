"""Lookups: keys, policies and prices, read from the database each time.

Concurrent lookups of one key don't share an answer: who asks after a revocation was announced must
not be given what was read before it. The edge keeps keys, admission keeps policies and prices.
"""

from contracts.cache import (
    KeyResolveReply,
    KeyResolveRequest,
    PoliciesReply,
    PoliciesRequest,
    PricesReply,
    PricesRequest,
)
from tier_cache.errors import DatabaseUnavailableError
from tier_cache.handlers.failures import unavailable
from tier_cache.store.database import Database


class Lookups:
    """Answers lookups; every method raises ReplyError when the database doesn't answer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def resolve_key(self, request: KeyResolveRequest) -> KeyResolveReply:
        """Tell what the database knows of a key."""
        try:
            return KeyResolveReply(key=await self._database.key(request.key_id))
        except DatabaseUnavailableError as error:
            raise unavailable("key", error) from error

    async def policies(self, _request: PoliciesRequest) -> PoliciesReply:
        """List every tier's policy."""
        try:
            return PoliciesReply(policies=await self._database.policies())
        except DatabaseUnavailableError as error:
            raise unavailable("policies", error) from error

    async def prices(self, _request: PricesRequest) -> PricesReply:
        """List the prices in effect and those to come."""
        try:
            return PricesReply(prices=await self._database.prices())
        except DatabaseUnavailableError as error:
            raise unavailable("prices", error) from error
