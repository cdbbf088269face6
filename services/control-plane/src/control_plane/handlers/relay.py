"""The relay: publishes what the outbox holds, after the commit that put it there.

It is woken by a change of this process, by a notification of Postgres for the changes of others,
and by the clock. An event is marked only after the stream's ack; a crash in between publishes it
again under the same message id, which the stream drops.
"""

import asyncio
from collections.abc import Sequence

from prometheus_client import Counter, Gauge, Histogram
from sqlalchemy.exc import SQLAlchemyError

from contracts.control import CONTROL_EVENTS
from control_plane.clients.bus import Connections
from control_plane.store import outbox
from control_plane.store.database import Database, now
from kit import log
from kit.bus.errors import BusError, DisconnectedError
from kit.bus.publishing import Publisher
from kit.crashpoint import crash_at
from kit.postgres import CONNECTION_ERRORS
from tables import OutboxMessage

_BATCH = 100
_LAST_ROUNDS_S = 2.0
_logger = log.get(__name__)
_DEPTH = Gauge("quotagate_control_plane_outbox_depth", "Events that are not published yet.")
_OLDEST = Gauge(
    "quotagate_control_plane_outbox_oldest_seconds", "Age of the oldest unpublished event."
)
_LAG = Histogram(
    "quotagate_control_plane_publish_lag_seconds",
    "Seconds from a change to the stream's ack of its event.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0),
)
_FAILURES = Counter(
    "quotagate_control_plane_relay_failures_total", "Rounds of the relay that failed."
)


class Relay:
    """Publishes the outbox, in order per subject; several may run on one database."""

    def __init__(
        self, database: Database, connections: Connections, poll_s: float, ack_timeout_s: float
    ) -> None:
        self._database = database
        self._connections = connections
        self._poll_s = poll_s
        self._ack_timeout_s = ack_timeout_s
        self._woken = asyncio.Event()
        self._failing = False

    def wake(self) -> None:
        """Look at the outbox now: something was committed, or NATS is back."""
        self._woken.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Publish until told to stop, then what is there already, for two seconds at most."""
        stopped = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                self._woken.clear()
                if not await self._try_round():
                    await self._wait(stopped)
            async with asyncio.timeout(_LAST_ROUNDS_S):
                while await self._try_round():
                    pass
        except TimeoutError:
            _logger.warning("events left in the outbox")
        finally:
            stopped.cancel()

    async def _wait(self, stopped: "asyncio.Task[bool]") -> None:
        woken = asyncio.create_task(self._woken.wait())
        await asyncio.wait(
            [woken, stopped], timeout=self._poll_s, return_when=asyncio.FIRST_COMPLETED
        )
        woken.cancel()

    async def _try_round(self) -> bool:
        """Publish once; return whether there may be more to do at once."""
        try:
            await self._measure()
            published = await self.round()
        except DisconnectedError:
            return False  # the bus has said so; the depth shows what waits
        except (BusError, SQLAlchemyError, *CONNECTION_ERRORS) as error:
            _FAILURES.inc()
            if not self._failing:
                _logger.warning("relay fails", error=type(error).__name__)
            self._failing = True
            return False
        if self._failing:
            _logger.info("relay works again")
        self._failing = False
        return published > 0

    async def round(self) -> int:
        """Publish the oldest event of every subject that has one; return how many.

        Raises:
            BusError: an event was not acknowledged; those that were are marked.

        """
        publisher = Publisher(self._connections.client())
        async with self._database.changing() as session:
            rows = await outbox.take(session, _BATCH)
            if not rows:
                return 0
            results = await asyncio.gather(
                *(self._publish(publisher, row) for row in rows), return_exceptions=True
            )
            crash_at("control_plane.published")
            acknowledged = [
                row for row, result in zip(rows, results, strict=True) if result is None
            ]
            await outbox.mark_published(session, [row.id for row in acknowledged if row.id])
            instant = await now(session)
        for row in acknowledged:
            _LAG.observe((instant - row.created_at).total_seconds())
        _raise_first(results)
        return len(acknowledged)

    async def _publish(self, publisher: Publisher, row: OutboxMessage) -> None:
        await publisher.publish_raw(
            row.subject, row.payload, row.message_id, CONTROL_EVENTS.name, self._ack_timeout_s
        )

    async def _measure(self) -> None:
        async with self._database.reading() as session:
            depth = await outbox.depth(session)
        _DEPTH.set(depth.messages)
        _OLDEST.set(depth.oldest_s)


def _raise_first(results: Sequence[BaseException | None]) -> None:
    for result in results:
        if result is not None:
            raise result
