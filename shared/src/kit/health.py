"""Readiness: named checks, each of which says nothing or why not; and guards of our promises."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from kit.errors import NotReadyError, UnsafeServerError

CheckResult = str | None
"""None: fine. Otherwise a short reason without secrets."""

Check = Callable[[], Awaitable[CheckResult]]

Guard = Callable[[], Awaitable[None]]
"""Raises UnsafeServerError where a server is configured so that a promise would break.

NotReadyError, its parent, says only that nobody can tell at the moment.
"""

_CHECK_TIMEOUT_S = 1.0


class Health:
    """What this process needs before it may take work."""

    def __init__(self, recheck_s: float = 30.0) -> None:
        """`recheck_s`: seconds between two looks of whoever asks :meth:`unsafe`."""
        self.recheck_s = recheck_s
        self._checks: dict[str, Check] = {}
        self._guards: list[Guard] = []
        self._opening: str | None = "starting"
        self.stopping = False

    def add(self, name: str, check: Check) -> None:
        """Add a check, asked at each question for readiness; one second at most."""
        self._checks[name] = check

    async def guard(self, *guards: Guard) -> None:
        """See that these hold now; :meth:`unsafe` asks them again for as long as we are open.

        Raises:
            NotReadyError: one of them doesn't, or nobody can tell.

        """
        for guard in guards:
            await guard()
            self._guards.append(guard)

    async def unsafe(self) -> CheckResult:
        """Ask every guard again; return what would break a promise, None where nothing is known to.

        A server that doesn't answer is no reason: the checks tell of it, and it may come back as
        it was.
        """
        for guard in self._guards:
            try:
                await guard()
            except UnsafeServerError as error:
                return str(error)
            except NotReadyError:
                continue
        return None

    @property
    def is_open(self) -> bool:
        """Whether the service has opened and not closed again."""
        return self._opening is None

    def waiting(self, reason: str) -> None:
        """Say why the service has not opened yet."""
        self._opening = reason

    def opened(self) -> None:
        """Say that the service has opened; from now on the checks decide."""
        self._opening = None

    def closed(self, reason: str) -> None:
        """Say that the service closed again, and forget its checks and guards."""
        self._checks.clear()
        self._guards.clear()
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
