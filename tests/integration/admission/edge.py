"""What the edge asks admission."""

from integration.bus import TIMEOUT_S, Bus
from integration.desk import PROVIDER

from contracts.admission import (
    LEASE_RELEASE,
    LEASE_RENEW,
    POSTFLIGHT,
    PREFLIGHT,
    Deployment,
    KeyLimits,
    Lease,
    LeaseReply,
    LeaseRequest,
    PostflightReply,
    PostflightRequest,
    PreflightReply,
    PreflightRequest,
)
from contracts.contract import RequestReply
from contracts.usage import Usage
from contracts.windows import WINDOWS, Window, WindowsReply, WindowsRequest
from kit.clock import SystemClock
from kit.ids import new_id

_US_PER_S = 1_000_000


class Edge:
    """Asks for one model, by default with a deadline that no test meets."""

    def __init__(self, bus: Bus, model: str) -> None:
        self._bus = bus
        self.model = model

    async def preflight(
        self,
        team_id: str,
        *models: str,
        deadline_s: float = TIMEOUT_S,
        estimate: int = 0,
        further: bool = False,
        key_limits: KeyLimits | None = None,
        windows: tuple[Window, ...] = (),
    ) -> PreflightReply:
        """Ask whether a team may call; `models` are the deployments', by default the one."""
        request = PreflightRequest(
            team_id=team_id,
            key_id="key",
            inference_id=new_id(),
            model=self.model,
            deployments=tuple(
                Deployment(provider=PROVIDER, model=model) for model in models or (self.model,)
            ),
            deadline_us=_from_now_us(deadline_s),
            estimated_input_tokens=estimate,
            further=further,
            key_limits=key_limits,
            windows=windows,
        )
        reply: PreflightReply = await self._bus.ask(PREFLIGHT, request)
        return reply

    async def postflight(
        self, team_id: str, admitted: PreflightReply, usage: Usage, *, deadline_s: float = TIMEOUT_S
    ) -> PostflightReply:
        """Charge an attempt under what its preflight pinned."""
        assert admitted.policy is not None
        assert admitted.prices[0] is not None
        request = PostflightRequest(
            team_id=team_id,
            inference_id=new_id(),
            attempt_no=1,
            usage=usage,
            policy=admitted.policy,
            price=admitted.prices[0],
            deadline_us=_from_now_us(deadline_s),
            key_id="key",
            model=self.model,
            shadowed=admitted.shadowed,
            lease=None if admitted.lease is None else admitted.lease.name,
        )
        reply: PostflightReply = await self._bus.ask(POSTFLIGHT, request)
        return reply

    async def judge(
        self, *windows: Window, deadline_s: float = TIMEOUT_S, **whose: str
    ) -> WindowsReply:
        """Ask whether a request without a preflight may come."""
        deadline_us = _from_now_us(deadline_s)
        request = WindowsRequest(windows=windows, deadline_us=deadline_us, **whose)
        reply: WindowsReply = await self._bus.ask(WINDOWS, request)
        return reply

    async def renew(self, team_id: str, lease: Lease) -> bool:
        """Hold a lease on; return whether it was held."""
        return await self._on_lease(LEASE_RENEW, team_id, lease)

    async def release(self, team_id: str, lease: Lease) -> bool:
        """Give a lease back; return whether it was held."""
        return await self._on_lease(LEASE_RELEASE, team_id, lease)

    async def _on_lease(
        self, contract: RequestReply[LeaseRequest, LeaseReply], team_id: str, lease: Lease
    ) -> bool:
        request = LeaseRequest(
            team_id=team_id, lease=lease.name, deadline_us=_from_now_us(TIMEOUT_S)
        )
        reply: LeaseReply = await self._bus.ask(contract, request)
        return reply.held


def _from_now_us(seconds: float) -> int:
    return SystemClock().now_us() + int(seconds * _US_PER_S)
