"""Questions to tier-cache, which reads the database and fills Redis."""

from typing import TypeVar

import msgspec
from prometheus_client import Counter

from admission.errors import TierCacheUnavailableError, UnknownTeamError
from contracts.cache import (
    BALANCE_FILL,
    DAY_FILL,
    POLICIES,
    PRICES,
    SPEND_FILL,
    TIER_RESOLVE,
    BalanceFillRequest,
    DayFillRequest,
    PoliciesReply,
    PoliciesRequest,
    PricesRequest,
    SpendFillRequest,
    TierResolveRequest,
)
from contracts.contract import RequestReply
from contracts.usage import Price
from kit.bus.errors import BusError
from kit.bus.requests import Requester

RequestT = TypeVar("RequestT", bound=msgspec.Struct)
ReplyT = TypeVar("ReplyT", bound=msgspec.Struct)

_LOAD_TIMEOUT_S = 5.0

_FILLS_ASKED = Counter(
    "quotagate_admission_fills_asked_total",
    "Team facts that were missing in Redis, by kind.",
    ["kind"],
)


class TierCache:
    """Asks tier-cache; every method raises TierCacheUnavailableError when it doesn't answer."""

    def __init__(self, requester: Requester) -> None:
        self._requester = requester

    async def policies(self) -> PoliciesReply:
        """Return every tier's policy, and which tiers can't have one."""
        return await self._ask(POLICIES, PoliciesRequest(), _LOAD_TIMEOUT_S)

    async def prices(self) -> tuple[Price, ...]:
        """Return the prices in effect and those to come."""
        return (await self._ask(PRICES, PricesRequest(), _LOAD_TIMEOUT_S)).prices

    async def fill_tier(self, team_id: str, timeout_s: float) -> None:
        """Have the team's tier put into Redis.

        Raises:
            UnknownTeamError: the database has no such team.

        """
        _FILLS_ASKED.labels("tier").inc()
        request = TierResolveRequest(team_id=team_id)
        if not (await self._ask(TIER_RESOLVE, request, timeout_s)).found:
            raise UnknownTeamError

    async def fill_balance(self, team_id: str, timeout_s: float) -> None:
        """Have the team's settled balance put into Redis, unless one is there.

        Raises:
            UnknownTeamError: the database has no such account.

        """
        _FILLS_ASKED.labels("balance").inc()
        request = BalanceFillRequest(team_id=team_id)
        if not (await self._ask(BALANCE_FILL, request, timeout_s)).found:
            raise UnknownTeamError

    async def fill_day(self, team_id: str, day: tuple[int, int], timeout_s: float) -> None:
        """Have the team's requests and tokens of a day counted into Redis, unless they are there.

        `day` is its start and its end, unix microseconds.

        Raises:
            UnknownTeamError: the database has no such team.

        """
        _FILLS_ASKED.labels("day").inc()
        request = DayFillRequest(team_id=team_id, start_us=day[0], end_us=day[1])
        if not (await self._ask(DAY_FILL, request, timeout_s)).found:
            raise UnknownTeamError

    async def fill_spend(self, request: SpendFillRequest, timeout_s: float) -> None:
        """Have what a team or a key spent in a period counted into Redis, unless it is there.

        Raises:
            UnknownTeamError: the database has no such team.

        """
        _FILLS_ASKED.labels("spend").inc()
        if not (await self._ask(SPEND_FILL, request, timeout_s)).found:
            raise UnknownTeamError

    async def _ask(
        self, contract: RequestReply[RequestT, ReplyT], request: RequestT, timeout_s: float
    ) -> ReplyT:
        try:
            return await self._requester.ask(contract, request, timeout_s)
        except BusError as error:
            raise TierCacheUnavailableError(f"{contract.endpoint}: {error}") from error
