"""Leases: a call still in flight keeps its place, one that ended without a postflight gives it."""

from collections.abc import Awaitable, Callable

from prometheus_client import Counter

from admission.handlers.failures import FAILURES, reply_error
from admission.store.limits import Limits
from contracts.admission import LeaseReply, LeaseRequest

_EXPIRED = Counter(
    "quotagate_admission_expired_leases_total",
    "Leases that had expired when their call asked to renew or release them.",
    ["asked"],
)


class Leases:
    """Answers renewals and releases; every method raises ReplyError when Redis fails."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    async def renew(self, request: LeaseRequest) -> LeaseReply:
        """Hold a lease for its full life from now, and again if it had expired."""
        return await _answered("renew", request, self._limits.renew_lease)

    async def release(self, request: LeaseRequest) -> LeaseReply:
        """Give a lease back."""
        return await _answered("release", request, self._limits.release_lease)


async def _answered(
    asked: str, request: LeaseRequest, do: Callable[[str, str], Awaitable[bool]]
) -> LeaseReply:
    try:
        held = await do(request.team_id, request.lease)
    except FAILURES as error:
        raise reply_error(error) from error
    if not held:
        _EXPIRED.labels(asked).inc()
    return LeaseReply(held=held)
