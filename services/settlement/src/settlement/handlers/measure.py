"""Measure: what isn't settled yet, and since when."""

from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncEngine

from kit.clock import Clock
from settlement.handlers.metrics import (
    LAG_S,
    NEGATIVE_BALANCES,
    STREAM_BYTES,
    STREAM_MAX_BYTES,
    UNSETTLED,
)
from settlement.store.measures import waiting
from settlement.store.record_stream import Progress, RecordStream


class Measure:
    """Sets the gauges. The same on every replica: they tell of the stores, not of the process."""

    def __init__(self, engine: AsyncEngine, stream: RecordStream, clock: Clock) -> None:
        self._engine = engine
        self._stream = stream
        self._clock = clock
        self._oldest_pending_at: datetime | None = None

    async def tick(self) -> None:
        """Measure once. The stream first, so that the lag is seen also while Postgres is down.

        Raises:
            SettlementError: a store didn't answer; the gauges show what was known before.

        """
        extent = await self._stream.extent()
        STREAM_BYTES.set(extent.bytes)
        STREAM_MAX_BYTES.set(extent.max_bytes or 0)
        progress = await self._stream.progress()
        UNSETTLED.labels("stream").set(progress.unread + progress.unacknowledged)
        unread_since = await self._unread_since(progress)
        self._show_lag(unread_since)
        found = await waiting(self._engine)
        self._oldest_pending_at = found.oldest_pending_at
        self._show_lag(unread_since)
        UNSETTLED.labels("pending").set(found.pending)
        UNSETTLED.labels("held").set(found.held)
        NEGATIVE_BALANCES.set(found.negative_balances)

    async def _unread_since(self, progress: Progress) -> datetime | None:
        """Return when the oldest message that is not consumed was stored."""
        if progress.is_done:
            return None
        message = await self._stream.message(progress.floor + 1)
        return None if message is None else message.stored_at

    def _show_lag(self, unread_since: datetime | None) -> None:
        since = [at for at in (unread_since, self._oldest_pending_at) if at is not None]
        now = datetime.fromtimestamp(self._clock.now_us() / 1_000_000, UTC)
        LAG_S.set(max(0.0, (now - min(since)).total_seconds()) if since else 0.0)
