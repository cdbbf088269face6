"""Storing records and settling them, as the service's loops do, but step by step."""

import asyncio

from contracts.inference import InferenceRecord
from settlement.domain.classification import classify
from settlement.handlers.settle import Settle
from settlement.store.records import Arrival, RecordStore

NEVER = asyncio.Event()
"""Nobody tells them to stop."""


async def store(records: RecordStore, *written: InferenceRecord) -> None:
    """Store records as if they had come off the stream."""
    arrivals = [Arrival(record, n, classify(record, 10**9)) for n, record in enumerate(written, 1)]
    await records.insert(arrivals)


async def settle_all(*workers: Settle) -> None:
    """Settle side by side until nothing waits any more."""
    while any(await asyncio.gather(*(worker.once_around(NEVER) for worker in workers))):
        pass
