"""The real record store with something in its way."""

import asyncio
from collections.abc import Sequence

import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from settlement.errors import StoreUnavailableError
from settlement.store.records import Arrival, RecordStore, Stored


class RefusingStore(RecordStore):
    """Some arrivals reach the database as something that it refuses."""

    def __init__(self, engine: AsyncEngine, refused: set[str]) -> None:
        super().__init__(engine)
        self._refused = refused

    async def insert(self, arrivals: Sequence[Arrival]) -> Stored:
        return await super().insert([self._spoilt(arrival) for arrival in arrivals])

    def _spoilt(self, arrival: Arrival) -> Arrival:
        if arrival.record.inference_id not in self._refused:
            return arrival
        impossible = msgspec.structs.replace(arrival.record, attempt_no=-1)
        return Arrival(impossible, arrival.stream_sequence, arrival.outcome)


class SlowStore(RecordStore):
    """Begins when it is told to go on."""

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine)
        self.calls = 0
        self.go_on = asyncio.Event()

    async def insert(self, arrivals: Sequence[Arrival]) -> Stored:
        self.calls += 1
        await self.go_on.wait()
        return await super().insert(arrivals)


class FailingStore(RecordStore):
    """Doesn't answer the first times."""

    def __init__(self, engine: AsyncEngine, failures: int) -> None:
        super().__init__(engine)
        self.failures = failures

    async def insert(self, arrivals: Sequence[Arrival]) -> Stored:
        if self.failures > 0:
            self.failures -= 1
            raise StoreUnavailableError
        return await super().insert(arrivals)


class BreakingStore(RecordStore):
    """Meets a bug whenever one record is in the batch."""

    def __init__(self, engine: AsyncEngine, breaker: str) -> None:
        super().__init__(engine)
        self._breaker = breaker

    async def insert(self, arrivals: Sequence[Arrival]) -> Stored:
        if any(arrival.record.inference_id == self._breaker for arrival in arrivals):
            raise ZeroDivisionError
        return await super().insert(arrivals)
