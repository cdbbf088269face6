"""Readiness: named checks, each of which says nothing or why not."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

CheckResult = str | None
"""None: fine. Otherwise a short reason without secrets."""

Check = Callable[[], Awaitable[CheckResult]]

_CHECK_TIMEOUT_S = 1.0


class Health:
    """What this process needs before it may take work."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}
        self._opening: str | None = "starting"
        self.stopping = False

    def add(self, name: str, check: Check) -> None:
        """Add a check, asked at each question for readiness; one second at most."""
        self._checks[name] = check

    def waiting(self, reason: str) -> None:
        """Say why the service has not opened yet."""
        self._opening = reason

    def opened(self) -> None:
        """Say that the service has opened; from now on the checks decide."""
        self._opening = None

    def closed(self, reason: str) -> None:
        """Say that the service closed again, and forget its checks."""
        self._checks.clear()
        self._opening = reason

    async def problems(self) -> Mapping[str, str]:
        """Return the reason for everything that isn't fine; empty means ready."""
        if self.stopping:
            return {"service": "stopping"}
        if self._opening is not None:
            return {"service": self._opening}
        names = list(self._checks)
        results = await asyncio.gather(*(self._ask(self._checks[name]) for name in names))
        return {name: reason for name, reason in zip(names, results, strict=True) if reason}

    @staticmethod
    async def _ask(check: Check) -> CheckResult:
        try:
            async with asyncio.timeout(_CHECK_TIMEOUT_S):
                return await check()
        except TimeoutError:
            return "no answer within a second"
