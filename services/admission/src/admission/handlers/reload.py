"""Keep policies and prices in memory current: at once when an event says so, else once a minute."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from prometheus_client import Counter

from admission.errors import TierCacheUnavailableError
from contracts.contract import Event
from kit import log
from kit.errors import NotReadyError

# Many changes at once, as when a catalogue of prices is entered, are one load and not many.
_SETTLE_S = 0.05
_RETRY_S = 1.0
_JITTER = 0.1

_logger = log.get(__name__)
_LOADS = Counter(
    "quotagate_admission_loads_total", "Loads of policies and prices.", ["what", "result"]
)


class Reloader:
    """Loads one thing again and again, one load at a time. A failed one keeps what was there."""

    def __init__(self, what: str, load: Callable[[], Awaitable[None]], interval_s: float) -> None:
        """`load` puts it in place, or raises TierCacheUnavailableError; `what` is for the log."""
        self.what = what
        self._load = load
        self._interval_s = interval_s
        self._wanted = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        # Jitter only, no secret.
        self._rng = random.Random()  # noqa: S311

    def changed(self) -> None:
        """Say that it changed: it will be loaded soon."""
        self._wanted.set()

    async def fresh(self) -> None:
        """Return after a load that began after this call, whether it succeeded or not."""
        loaded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(loaded)
        self._wanted.set()
        await loaded

    async def load_first(self) -> None:
        """Load before anything else can be done.

        Raises:
            NotReadyError: tier-cache doesn't answer.

        """
        try:
            await self._load_counted()
        except TierCacheUnavailableError as error:
            raise NotReadyError(f"{self.what}: {error}") from error

    async def run(self, _stop: asyncio.Event) -> None:
        """Load when wanted, and every interval, until cancelled."""
        pause_s = self._interval_s
        while True:
            try:
                async with asyncio.timeout(pause_s * (1 + self._rng.uniform(0, _JITTER))):
                    await self._wanted.wait()
            except TimeoutError:
                pass  # nothing was announced; this load is the safety net
            if not self._waiting:
                await asyncio.sleep(_SETTLE_S)
            self._wanted.clear()
            waiting, self._waiting = self._waiting, []
            try:
                await self._load_counted()
            except TierCacheUnavailableError as error:
                _logger.warning("load failed", what=self.what, detail=str(error))
                pause_s = min(_RETRY_S, self._interval_s)
            else:
                pause_s = self._interval_s
            for loaded in waiting:
                if not loaded.done():  # its caller may have left
                    loaded.set_result(None)

    async def _load_counted(self) -> None:
        """Load now.

        Raises:
            TierCacheUnavailableError: what was there stays.

        """
        try:
            await self._load()
        except TierCacheUnavailableError:
            _LOADS.labels(self.what, "failed").inc()
            raise
        _LOADS.labels(self.what, "ok").inc()


async def follow(client: Client, event: Event[Any], reloader: Reloader) -> None:
    """Have every event of this kind cause a load; each replica gets each of them."""

    async def receive(_message: Msg) -> None:
        reloader.changed()

    await client.subscribe(event.wildcard, cb=receive)
