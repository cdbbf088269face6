"""Trim early: a stream that is nearly full forgets settled records before their time.

A full stream refuses publishers, and then every call is refused. The replay window is only for the
day on which a database is restored, so it is what gives way; what isn't settled never does.
"""

from dataclasses import dataclass
from datetime import datetime

from kit import log
from kit.clock import Clock
from settlement.domain.trimming import Extent, SettledRun, is_nearly_full, settled_run, surplus
from settlement.handlers.accounted import Accounted
from settlement.handlers.given_up import nothing_given_up
from settlement.handlers.metrics import TRIMMED
from settlement.store.record_stream import RecordStream
from settlement.store.records import RecordStore

_PAGE_SEQUENCES = 10_000
# Removed in one round; what is left over is removed in the next.
_MAX_PAGES = 50

_logger = log.get(__name__)


@dataclass(frozen=True, slots=True)
class _Trimmed:
    """What one round came to. `newest_done_at`: the database's clock; None: nothing was known."""

    removed: int
    newest_done_at: datetime | None
    stopped_at: int | None
    """The sequence that must stay although more should go; None: enough went."""


class TrimEarly:
    """Removes from the front of the stream. Replicas may do so side by side."""

    def __init__(
        self,
        records: RecordStore,
        stream: RecordStream,
        accounted: Accounted,
        clock: Clock,
        share: float,
    ) -> None:
        self._records = records
        self._stream = stream
        self._accounted = accounted
        self._clock = clock
        self._share = share

    async def tick(self) -> None:
        """Look how full the stream is, and make room if it is too full.

        Raises:
            SettlementError: a store didn't answer; nothing wrong was removed.

        """
        extent = await self._stream.extent()
        if not is_nearly_full(extent, self._share):
            return
        # In this order: what was given up before the first answer shows in the second.
        progress = await self._stream.progress()
        if await nothing_given_up(self._stream):
            self._tell(extent, await self._make_room(extent, progress.floor + 1))
        else:
            self._tell(extent, _Trimmed(0, None, extent.first))

    async def _make_room(self, extent: Extent, end: int) -> _Trimmed:
        """Remove settled records below `end` until there is room."""
        removed, newest_done_at = 0, None
        for _ in range(_MAX_PAGES):
            wanted = min(surplus(extent, self._share), _PAGE_SEQUENCES)
            if not wanted:
                break
            page = range(extent.first, max(extent.first, min(extent.first + wanted, end)))
            run = await self._settled(page)
            if run.newest_done_at is not None:
                newest_done_at = max(run.newest_done_at, newest_done_at or run.newest_done_at)
            if run.end > extent.first:
                await self._stream.forget_before(run.end)
                TRIMMED.labels("early").inc(run.end - extent.first)
                removed += run.end - extent.first
            if run.end < extent.first + wanted:
                return _Trimmed(removed, newest_done_at, run.end)
            extent = await self._stream.extent()
        return _Trimmed(removed, newest_done_at, None)

    async def _settled(self, page: range) -> SettledRun:
        """Return how far nothing on the page is needed any more."""
        stored = await self._records.by_sequence(page, len(page))
        run = settled_run(stored, page)
        for sequence in run.unknown:
            if not await self._accounted.needs_no_more(sequence):
                return settled_run(stored, range(page.start, sequence))
        return run

    def _tell(self, extent: Extent, trimmed: _Trimmed) -> None:
        now_s = self._clock.now_us() / 1_000_000
        newest = trimmed.newest_done_at
        if trimmed.removed:
            _logger.warning(
                "replay window shortened, the record stream is nearly full",
                removed=trimmed.removed,
                window_s=None if newest is None else round(now_s - newest.timestamp()),
            )
        if trimmed.stopped_at is not None:
            _logger.error(
                "record stream is nearly full of what is not settled",
                bytes=extent.bytes,
                max_bytes=extent.max_bytes,
                first_needed=trimmed.stopped_at,
            )
