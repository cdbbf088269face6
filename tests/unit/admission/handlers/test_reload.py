"""Loads: one at a time, at once when something changed, and what was there stays on failure."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from admission.errors import TierCacheUnavailableError
from admission.handlers.reload import Reloader
from kit.background import running
from kit.errors import NotReadyError

_NEVER_S = 3_600.0


class Source:
    """Counts its loads, tells of each beginning, and ends one when told to."""

    def __init__(self) -> None:
        self.begun = 0
        self.at_once = 0
        self.most_at_once = 0
        self.began = asyncio.Event()
        self.go = asyncio.Event()
        self.go.set()
        self.fails = False

    async def load(self) -> None:
        self.begun += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.began.set()
        await self.go.wait()
        self.at_once -= 1
        if self.fails:
            raise TierCacheUnavailableError

    async def begins(self) -> None:
        """Return when the next load has begun."""
        self.began.clear()
        await self.began.wait()


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
async def reloader(source: Source) -> AsyncIterator[Reloader]:
    reloader = Reloader("things", source.load, _NEVER_S)
    async with running(reloader.run, "things", grace_s=0):
        yield reloader


async def test_many_changes_at_once_are_one_load(source: Source, reloader: Reloader) -> None:
    for _ in range(100):
        reloader.changed()
    await source.begins()
    await reloader.fresh()
    assert source.begun == 2  # the hundred, and the one that was waited for here


async def test_a_change_during_a_load_is_another_load(source: Source, reloader: Reloader) -> None:
    source.go.clear()
    reloader.changed()
    await source.begins()
    reloader.changed()
    source.go.set()
    await source.begins()
    assert (source.begun, source.most_at_once) == (2, 1)


async def test_fresh_waits_for_a_load_that_began_after_it(
    source: Source, reloader: Reloader
) -> None:
    source.go.clear()
    reloader.changed()
    await source.begins()
    waiters = [asyncio.create_task(reloader.fresh()) for _ in range(8)]
    await asyncio.sleep(0)  # each runs up to its wait
    source.go.set()
    await asyncio.gather(*waiters)
    assert source.begun == 2


async def test_who_leaves_does_not_disturb_the_others(source: Source, reloader: Reloader) -> None:
    source.go.clear()
    leaver = asyncio.create_task(reloader.fresh())
    stayer = asyncio.create_task(reloader.fresh())
    await source.begins()
    leaver.cancel()
    source.go.set()
    await stayer
    assert source.begun == 1


async def test_a_failed_load_is_not_the_end(source: Source, reloader: Reloader) -> None:
    source.fails = True
    await reloader.fresh()
    source.fails = False
    await reloader.fresh()
    assert source.begun == 2


async def test_without_any_change_it_loads_after_the_interval(source: Source) -> None:
    reloader = Reloader("things", source.load, interval_s=0.001)
    async with running(reloader.run, "things", grace_s=0):
        await source.begins()
        await source.begins()
    assert source.begun >= 2


async def test_the_first_load_decides_about_readiness(source: Source) -> None:
    reloader = Reloader("things", source.load, _NEVER_S)
    source.fails = True
    with pytest.raises(NotReadyError, match="things"):
        await reloader.load_first()
    source.fails = False
    await reloader.load_first()
