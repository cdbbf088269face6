"""An idempotency key while a request holds it: its entry is written again before it is old."""

import asyncio
from dataclasses import dataclass

import msgspec

from contracts.idempotency import IdempotencyEntry, KeptAnswer, Progress
from contracts.inference import InferenceRecord
from kit import log
from kit.bus.buckets import BucketStore
from kit.bus.errors import BusError, ConflictError

# Two may fail before others take the key for abandoned.
_RENEWALS_PER_LEASE = 3

_logger = log.get(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTerms:
    """How keys are kept, in seconds of the store's clock and bytes."""

    life_s: int
    """An entry is forgotten so long after it was written last."""
    lease_s: float
    """A running entry that is older belongs to an edge that is gone."""
    answer_bytes: int
    """The largest body that is kept."""
    timeout_s: float
    """For one question to the store, by our own clock."""


class HeldKey:
    """One key of one request. Its own writes never cross on their way."""

    def __init__(
        self,
        store: BucketStore[IdempotencyEntry],
        terms: KeyTerms,
        name: str,
        entry: IdempotencyEntry,
        revision: int,
    ) -> None:
        """Hold the key `name`, whose entry was just written under `revision`."""
        self._store = store
        self._terms = terms
        self._entry = entry
        self._revision = revision
        self._turn = asyncio.Lock()
        self._renewing = asyncio.create_task(self._renew())
        self.name = name
        self.first_attempt_no = entry.attempt_no

    @property
    def inference_id(self) -> str:
        """The inference that this request begins or continues."""
        return self._entry.inference_id

    async def reach(self, attempt_no: int) -> None:
        """Say that an attempt is about to begin, so that its number is never used again.

        Raises:
            ConflictError: others took the key for abandoned, and hold it now.
            BusError: it couldn't be said; the attempt must not begin.

        """
        await self._write(msgspec.structs.replace(self._entry, attempt_no=attempt_no))

    def finished(
        self, answer: KeptAnswer | None, unrecorded: InferenceRecord | None = None
    ) -> IdempotencyEntry:
        """Return the last word on a success; `answer` None: there is none to be kept."""
        if answer is not None and len(answer.body) > self._terms.answer_bytes:
            answer = None
        return msgspec.structs.replace(
            self._entry, progress=Progress.FINISHED, answer=answer, unrecorded=unrecorded
        )

    def left_open(self) -> IdempotencyEntry:
        """Return the last word where every attempt has failed."""
        return msgspec.structs.replace(self._entry, progress=Progress.OPEN)

    async def settle(self, entry: IdempotencyEntry) -> None:
        """Write the last word.

        Raises:
            ConflictError: others took the key for abandoned, and hold it now.
            BusError: it may not have been written; it may be said again.

        """
        await self._stop()
        await self._write(entry)

    async def release(self) -> None:
        """Let the key go as it was, because no attempt has begun; if that fails, its lease ends."""
        await self._stop()
        try:
            if self.first_attempt_no == 1:
                await self._store.remove(self.name, self._revision)
            else:
                entry = msgspec.structs.replace(
                    self._entry, progress=Progress.OPEN, attempt_no=self.first_attempt_no - 1
                )
                await self._write(entry)
        except BusError as error:
            _logger.warning("idempotency key not released", error=type(error).__name__)

    async def _stop(self) -> None:
        async with self._turn:
            self._renewing.cancel()

    async def _write(self, entry: IdempotencyEntry) -> None:
        async with self._turn:
            try:
                self._revision = await self._put(entry, self._revision)
            except ConflictError:
                kept = await self._store.read(self.name)
                if kept.value is None or kept.value.holder != entry.holder:
                    raise
                # A write of ours that we weren't told of.
                self._revision = await self._put(entry, kept.revision)
            self._entry = entry

    async def _put(self, entry: IdempotencyEntry, revision: int) -> int:
        return await self._store.write(self.name, entry, revision, self._terms.life_s)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._terms.lease_s / _RENEWALS_PER_LEASE)
            try:
                await self._write(self._entry)
            except ConflictError:
                _logger.warning("idempotency key lost", inference_id=self.inference_id)
                return
            except BusError as error:
                _logger.warning("idempotency key not renewed", error=type(error).__name__)
