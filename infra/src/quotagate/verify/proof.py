"""Puts the parts of the proof in their order: the stream's floor, the snapshot, the cache."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from quotagate import stores
from quotagate.stores import CannotTellError, StoreSettings
from quotagate.verify.books import check_books
from quotagate.verify.cached import check_cache
from quotagate.verify.findings import Finding, Report
from quotagate.verify.stream import Progress, check_stream, progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to look at, and how patiently."""

    with_cache: bool = True
    with_stream: bool = True
    pending_limit_s: int = 600
    """How long a record may wait for its charge."""
    cache_wait_s: float = 30.0
    """How long a cached balance may differ: the reconciler repairs it within this time."""
    listed: int = 20
    """How many findings of each kind are kept; all are counted."""


async def verify(settings: StoreSettings, options: Options) -> Report:
    """Prove what the stores hold. Changes nothing in them.

    A store that doesn't answer is named in the report's `untold`; the rest is proved without it.
    """
    started_s = time.monotonic()
    report = Report(listed=options.listed)
    before = None
    if options.with_stream:
        # Before the snapshot: what is acknowledged by now must be in it.
        before = await _progress(settings, report)
    with _noting(report):
        async with stores.database(settings) as engine:
            async with stores.snapshot(engine) as books:
                await check_books(books, options.pending_limit_s, report)
                if before is not None:
                    await _prove_stream(settings, books, before.floor, report)
            if options.with_cache:
                await _prove_cache(settings, engine, options, report)
    report.figures["seconds"] = f"{time.monotonic() - started_s:.1f}"
    return report


@contextlib.contextmanager
def _noting(report: Report) -> Iterator[None]:
    try:
        yield
    except CannotTellError as error:
        report.untold.append(str(error))


async def _progress(settings: StoreSettings, report: Report) -> Progress | None:
    found = None
    with _noting(report):
        async with stores.bus(settings) as client:
            found = await progress(client)
    return found


async def _prove_stream(
    settings: StoreSettings, books: AsyncConnection, floor: int, report: Report
) -> None:
    with _noting(report):
        async with stores.bus(settings) as client:
            await check_stream(client, books, floor, report)


async def _prove_cache(
    settings: StoreSettings, engine: AsyncEngine, options: Options, report: Report
) -> None:
    doubtful: list[Finding] = []
    with _noting(report):
        async with stores.cache(settings) as client:
            doubtful = await check_cache(client, engine, options.cache_wait_s, report)
    if doubtful and options.with_stream:
        now = await _progress(settings, report)
        if now is None or now.waiting:
            waiting = "unknown" if now is None else now.waiting
            report.notes.append(
                f"{len(doubtful)} cached balances differ and are not judged: rough debits of"
                f" records that are still in the stream may be the reason (waiting: {waiting})"
            )
            return
    for finding in doubtful:
        report.add(finding)
