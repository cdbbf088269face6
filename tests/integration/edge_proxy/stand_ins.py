"""Admission and tier-cache as the edge sees them: real contracts, a real bus, told what to say."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from decimal import Decimal

from integration.bus import nats_settings

from contracts.admission import (
    LEASE_RELEASE,
    LEASE_RENEW,
    POSTFLIGHT,
    PREFLIGHT,
    Decision,
    LeaseReply,
    LeaseRequest,
    LimitState,
    Policy,
    PostflightReply,
    PostflightRequest,
    PreflightReply,
    PreflightRequest,
)
from contracts.cache import KEY_RESOLVE, KeyFacts, KeyResolveReply, KeyResolveRequest
from contracts.usage import Price, UsdPerMillion
from contracts.windows import WINDOWS, WindowsReply, WindowsRequest, WindowUse
from kit.bus.connection import connection
from kit.bus.serving import Server
from kit.clock import SystemClock
from quotagate.stack import Servers

POLICY = Policy(tier_id="tier_x", rpm=60, tpm=60_000)
BEFORE = LimitState(
    limit_requests=60,
    remaining_requests=0,
    reset_requests_us=1_000_000,
    limit_tokens=60_000,
    remaining_tokens=60_000,
    reset_tokens_us=0,
)
AFTER = LimitState(
    limit_requests=60,
    remaining_requests=0,
    reset_requests_us=900_000,
    limit_tokens=60_000,
    remaining_tokens=59_000,
    reset_tokens_us=1_000_000,
)

Preflight = Callable[[PreflightRequest], Awaitable[PreflightReply]]
Postflight = Callable[[PostflightRequest], Awaitable[PostflightReply]]


def price_of(provider: str, model: str) -> Price:
    """Return a price whose id says what it is for."""
    classes = dict.fromkeys(UsdPerMillion.__struct_fields__, Decimal(1))
    return Price(
        price_id=f"{provider}-{model}",
        provider=provider,
        model=model,
        usd_per_million=UsdPerMillion(**classes),
        effective_from_us=0,
    )


async def allow(request: PreflightRequest) -> PreflightReply:
    """Let everybody call."""
    return PreflightReply(
        decision=Decision.ALLOWED,
        limits=BEFORE,
        policy=POLICY,
        prices=tuple(price_of(one.provider, one.model) for one in request.deployments),
    )


async def charge(_request: PostflightRequest) -> PostflightReply:
    """Charge everybody."""
    return PostflightReply(limits=AFTER, balance_known=True)


async def let_in(request: WindowsRequest) -> WindowsReply:
    """Let everybody come, as the first."""
    return WindowsReply(uses=tuple(WindowUse(used=1) for _ in request.windows))


class StandIns:
    """What both would say to one team, and what they were asked."""

    def __init__(self) -> None:
        self.keys: dict[str, KeyFacts] = {}
        self.lookups: list[str] = []
        self.preflights: list[PreflightRequest] = []
        self.postflights: list[PostflightRequest] = []
        self.renewals: asyncio.Queue[LeaseRequest] = asyncio.Queue()
        self.releases: asyncio.Queue[LeaseRequest] = asyncio.Queue()
        self.on_preflight: dict[str, Preflight] = {}
        """By team; others are allowed."""
        self.on_postflight: dict[str, Postflight] = {}
        self.on_lookup: dict[str, Callable[[], Awaitable[None]]] = {}
        """By key; runs before the answer."""
        self.windows: list[WindowsRequest] = []
        self.on_windows: Callable[[WindowsRequest], Awaitable[WindowsReply]] = let_in
        self._servers: dict[str, Server] = {}

    def preflights_of(self, team_id: str) -> list[PreflightRequest]:
        """Return what was asked about a team, oldest first."""
        return [request for request in self.preflights if request.team_id == team_id]

    def postflights_of(self, team_id: str) -> list[PostflightRequest]:
        """Return what was charged to a team, oldest first."""
        return [request for request in self.postflights if request.team_id == team_id]

    async def resolve(self, request: KeyResolveRequest) -> KeyResolveReply:
        """Answer as tier-cache."""
        self.lookups.append(request.key_id)
        facts = self.keys.get(request.key_id)
        if request.key_id in self.on_lookup:
            await self.on_lookup[request.key_id]()
        return KeyResolveReply(key=facts)

    async def preflight(self, request: PreflightRequest) -> PreflightReply:
        """Answer as admission."""
        self.preflights.append(request)
        return await self.on_preflight.get(request.team_id, allow)(request)

    async def postflight(self, request: PostflightRequest) -> PostflightReply:
        """Answer as admission."""
        self.postflights.append(request)
        return await self.on_postflight.get(request.team_id, charge)(request)

    async def judge_windows(self, request: WindowsRequest) -> WindowsReply:
        """Answer as admission."""
        self.windows.append(request)
        return await self.on_windows(request)

    async def renew(self, request: LeaseRequest) -> LeaseReply:
        """Answer as admission."""
        await self.renewals.put(request)
        return LeaseReply(held=True)

    async def release(self, request: LeaseRequest) -> LeaseReply:
        """Answer as admission."""
        await self.releases.put(request)
        return LeaseReply(held=True)

    @contextlib.asynccontextmanager
    async def admission(self, servers: Servers) -> AsyncIterator[None]:
        """Serve as admission, with its rights."""
        async with _serving(servers, "admission") as server:
            await server.add(PREFLIGHT, self.preflight)
            await server.add(POSTFLIGHT, self.postflight)
            await server.add(WINDOWS, self.judge_windows)
            await server.add(LEASE_RENEW, self.renew)
            await server.add(LEASE_RELEASE, self.release)
            yield

    @contextlib.asynccontextmanager
    async def tier_cache(self, servers: Servers) -> AsyncIterator[None]:
        """Serve as tier-cache, with its rights."""
        async with _serving(servers, "tier-cache") as server:
            await server.add(KEY_RESOLVE, self.resolve)
            yield


@contextlib.asynccontextmanager
async def _serving(servers: Servers, service: str) -> AsyncIterator[Server]:
    async with connection(nats_settings(servers, service), f"stand-in for {service}") as client:
        server = Server(client, service, SystemClock(), max_in_flight=1_000)
        await server.start("0.0.1")
        try:
            yield server
        finally:
            await server.stop(grace_s=0)


class Latch:
    """A place where a stand-in waits until the test lets it go on."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    async def wait(self) -> None:
        """Say that somebody is here, and wait."""
        self.reached.set()
        await self.open.wait()

    async def postflight(self, request: PostflightRequest) -> PostflightReply:
        """Charge once the latch is open."""
        await self.wait()
        return await charge(request)
