"""Idempotency keys in the bus's key-value store, each held by one request at a time.

What couldn't be written when an inference had ended is owed, and written when the store is back:
otherwise the client's next try would be a second inference.
"""

import asyncio
import math
import time
from dataclasses import dataclass

import msgspec
from nats.aio.client import Client
from prometheus_client import Counter, Gauge

from contracts.idempotency import IDEMPOTENCY, IdempotencyEntry, Progress
from edge_proxy.domain.idempotency import (
    STILL_RUNNING,
    UNAVAILABLE,
    GoesOn,
    Replay,
    Unused,
    entry_key,
    meaning,
)
from edge_proxy.domain.problems import Problem
from edge_proxy.store.held_key import HeldKey, KeyTerms
from kit import log
from kit.bus.buckets import BucketStore, Kept
from kit.bus.errors import BusError, ConflictError
from kit.ids import new_id

_PAY_EVERY_S = 0.5
_OWED_AT_MOST_S = 600.0
_OWED_ANSWERS_BYTES = 32 * 1024**2
_US_PER_S = 1_000_000

_logger = log.get(__name__)
_CLAIMS = Counter(
    "quotagate_idempotency_claims_total",
    "Requests with an idempotency key by what it meant: new, continued, replayed, refused,"
    " unavailable.",
    ["meaning"],
)
_OWED = Gauge(
    "quotagate_idempotency_owed", "Ends of inferences that the key-value store hasn't taken yet."
)


@dataclass(frozen=True, slots=True)
class _Debt:
    """The last word on a key, and when it was said, in seconds of the monotonic clock."""

    held: HeldKey
    entry: IdempotencyEntry
    since_s: float


class IdempotencyStore:
    """The keys of all teams, as far as this edge has to do with them."""

    def __init__(self, client: Client, terms: KeyTerms) -> None:
        self._store = BucketStore(client, IDEMPOTENCY, terms.timeout_s)
        self._terms = terms
        self._owed: dict[str, _Debt] = {}
        _OWED.set_function(lambda: len(self._owed))

    async def claim(self, team_id: str, key: str, of_request: str) -> HeldKey | Replay | Problem:
        """Hold a team's key for a request, or return its answer, or why there is none."""
        name = entry_key(team_id, key)
        fresh = IdempotencyEntry(
            request_hash=of_request,
            inference_id=new_id(),
            attempt_no=1,
            progress=Progress.RUNNING,
            holder=new_id(),
        )
        try:
            found = await self._claim(name, fresh)
        except ConflictError:
            found = STILL_RUNNING
        except BusError as error:
            _logger.warning("idempotency key not claimed", error=type(error).__name__)
            found = UNAVAILABLE
        _CLAIMS.labels(_name_of(found)).inc()
        return found

    async def settle(self, held: HeldKey, entry: IdempotencyEntry) -> None:
        """Write the last word of a request on its key, now or as soon as that is possible."""
        try:
            await held.settle(entry)
        except ConflictError:
            _logger.warning("idempotency key lost", inference_id=entry.inference_id)
        except BusError as error:
            _logger.warning(
                "end of inference owed to its idempotency key",
                error=type(error).__name__,
                inference_id=entry.inference_id,
            )
            self._owe(held, entry)

    async def pay(self, stop: asyncio.Event) -> None:
        """Write what is owed, until told to stop: a loop beside the service."""
        while not stop.is_set():
            for name, debt in list(self._owed.items()):
                if not await self._pay(name, debt):
                    break
            try:
                async with asyncio.timeout(_PAY_EVERY_S):
                    await stop.wait()
            except TimeoutError:
                continue

    async def recorded(self, team_id: str, key: str) -> None:
        """Forget the record of a finished inference, now that the stream has it."""
        name = entry_key(team_id, key)
        try:
            kept = await self._store.read(name)
            if kept.value is not None and kept.value.unrecorded is not None:
                entry = msgspec.structs.replace(kept.value, unrecorded=None)
                await self._store.write(name, entry, kept.revision, self._terms.life_s)
        except BusError as error:
            # The next replay hands the record over once more, under the same id.
            _logger.warning("idempotency key not brought up to date", error=type(error).__name__)

    async def _claim(self, name: str, fresh: IdempotencyEntry) -> HeldKey | Replay | Problem:
        terms = self._terms
        try:
            revision = await self._store.write(name, fresh, 0, terms.life_s)
        except ConflictError:
            kept = await self._store.read(name)
        else:
            return HeldKey(self._store, terms, name, fresh, revision)
        age_s = await self._age_s(kept)
        entry = fresh
        match meaning(kept.value, fresh.request_hash, age_s, terms.lease_s):
            case GoesOn(inference_id, attempt_no):
                entry = msgspec.structs.replace(
                    fresh, inference_id=inference_id, attempt_no=attempt_no
                )
            case Replay() | Problem() as found:
                return found
            case Unused():
                pass
        revision = await self._store.write(name, entry, kept.revision, terms.life_s)
        return HeldKey(self._store, terms, name, entry, revision)

    async def _age_s(self, kept: Kept[IdempotencyEntry]) -> float:
        """Return how old a running entry is by the server's clock; others have no age."""
        if kept.value is None or kept.value.progress is not Progress.RUNNING:
            return math.inf
        return (await self._store.now_us() - kept.written_at_us) / _US_PER_S

    def _owe(self, held: HeldKey, entry: IdempotencyEntry) -> None:
        kept_bytes = sum(
            len(debt.entry.answer.body) for debt in self._owed.values() if debt.entry.answer
        )
        if entry.answer is not None and kept_bytes + len(entry.answer.body) > _OWED_ANSWERS_BYTES:
            entry = msgspec.structs.replace(entry, answer=None, unrecorded=None)
        self._owed[held.name] = _Debt(held, entry, time.monotonic())

    async def _pay(self, name: str, debt: _Debt) -> bool:
        """Try to write what is owed; return whether the store is there."""
        try:
            await debt.held.settle(debt.entry)
        except ConflictError:
            _logger.warning("idempotency key lost", inference_id=debt.entry.inference_id)
        except BusError:
            if time.monotonic() - debt.since_s < _OWED_AT_MOST_S:
                return False
            _logger.exception("idempotency key given up", inference_id=debt.entry.inference_id)
        self._owed.pop(name, None)
        return True


def _name_of(found: HeldKey | Replay | Problem) -> str:
    match found:
        case HeldKey():
            return "new" if found.first_attempt_no == 1 else "continued"
        case Replay():
            return "replayed"
        case _:
            return "unavailable" if found is UNAVAILABLE else "refused"
