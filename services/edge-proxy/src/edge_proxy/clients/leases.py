"""Leases of calls in flight: renewed while an inference lives, given back at its end.

A lease that can't be renewed or given back expires by itself: then the team has a place more, or
less, than it should for that long.
"""

import asyncio

from contracts.admission import Lease
from edge_proxy.clients.admission import AdmissionClient

# A renewal may fail twice before the lease expires.
_RENEWALS_PER_LIFE = 3
_US_PER_S = 1_000_000


class Leases:
    """Leases of this edge's inferences. Renewal and end of one never cross on their way."""

    def __init__(self, admission: AdmissionClient) -> None:
        self._admission = admission
        self._held: dict[str, _Held] = {}

    def begin(self, team_id: str, lease: Lease) -> None:
        """Renew a lease from now on."""
        self._held[lease.name] = _Held(self._admission, team_id, lease)

    async def stop(self, lease: Lease) -> bool:
        """Renew it no longer; returns when no renewal is on its way, False: it wasn't renewed."""
        held = self._held.pop(lease.name, None)
        if held is None:
            return False
        await held.stop()
        return True

    async def give_back(self, team_id: str, lease: Lease) -> None:
        """Give back a lease that no postflight ended."""
        await self._admission.release_lease(team_id, lease.name)


class _Held:
    """One lease with the task that renews it."""

    def __init__(self, admission: AdmissionClient, team_id: str, lease: Lease) -> None:
        self._admission = admission
        self._team_id = team_id
        self._lease = lease
        self._renewing = asyncio.Lock()
        self._task = asyncio.create_task(self._renew())

    async def stop(self) -> None:
        async with self._renewing:
            self._task.cancel()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._lease.life_us / _RENEWALS_PER_LIFE / _US_PER_S)
            async with self._renewing:
                await self._admission.renew_lease(self._team_id, self._lease.name)
