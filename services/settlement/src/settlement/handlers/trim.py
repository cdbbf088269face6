"""Trim: the stream forgets what was settled longer ago than the replay window.

It is a contract with whoever restores the database to an earlier moment: for as long as the
window, what that moment lacks can be replayed from the stream.
"""

from datetime import UTC, datetime, timedelta

from kit import log
from kit.clock import Clock
from settlement.domain.trimming import first_to_keep
from settlement.handlers.given_up import nothing_given_up
from settlement.handlers.metrics import TRIMMED
from settlement.store.record_stream import RecordStream
from settlement.store.records import RecordStore

# Looked at in one round; at one round a minute this outpaces what one stream can take.
_MAX_RECORDS = 500_000
_PAGE_RECORDS = 10_000
_logger = log.get(__name__)


class Trim:
    """Removes from the front of the stream. Replicas may do so side by side."""

    def __init__(
        self, records: RecordStore, stream: RecordStream, clock: Clock, replay_window_s: int
    ) -> None:
        self._records = records
        self._stream = stream
        self._clock = clock
        self._replay_window = timedelta(seconds=replay_window_s)

    async def tick(self) -> None:
        """Remove what may go, and nothing that isn't settled.

        Raises:
            SettlementError: a store didn't answer; nothing wrong was removed.

        """
        # In this order: what was given up before the first answer shows in the second.
        progress = await self._stream.progress()
        if not await nothing_given_up(self._stream):
            return
        extent = await self._stream.extent()
        # The database's clock stands in the rows; the clocks differ by far less than a window.
        now = datetime.fromtimestamp(self._clock.now_us() / 1_000_000, UTC)
        keep = await self._first_to_keep(
            range(extent.first, progress.floor + 1), now - self._replay_window
        )
        if keep is not None and keep > extent.first:
            await self._stream.forget_before(keep)
            TRIMMED.labels("in_time").inc(keep - extent.first)
            _logger.info("record stream trimmed", first=keep, removed=keep - extent.first)

    async def _first_to_keep(self, sequences: range, cutoff: datetime) -> int | None:
        keep = None
        looked_at = 0
        while sequences and looked_at < _MAX_RECORDS:
            page = await self._records.by_sequence(sequences, _PAGE_RECORDS)
            kept = first_to_keep(page, cutoff)
            keep = kept or keep
            looked_at += len(page)
            if len(page) < _PAGE_RECORDS or kept != page[-1].stream_sequence + 1:
                break
            sequences = range(kept, sequences.stop)
        return keep
