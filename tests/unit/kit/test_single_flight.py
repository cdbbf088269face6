"""Callers who ask the same thing at the same time share one answer."""

import asyncio

import pytest

from kit.single_flight import SingleFlight


class Work:
    """Counts its runs and ends when told to."""

    def __init__(self) -> None:
        self.runs = 0
        self.finish = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.runs += 1
        run = self.runs
        await self.finish.wait()
        if self.error is not None:
            raise self.error
        return run


async def _joined(
    flights: SingleFlight[str, int], work: Work, callers: int
) -> list[asyncio.Task[int]]:
    tasks = [asyncio.create_task(flights.run("team", work)) for _ in range(callers)]
    await asyncio.sleep(0)  # each task runs up to its wait
    return tasks


async def test_callers_who_wait_together_share_one_run() -> None:
    flights, work = SingleFlight[str, int](), Work()
    tasks = await _joined(flights, work, 8)
    work.finish.set()
    assert await asyncio.gather(*tasks) == [1] * 8
    assert work.runs == 1


async def test_another_key_runs_by_itself() -> None:
    flights, work = SingleFlight[str, int](), Work()
    work.finish.set()
    results = await asyncio.gather(flights.run("a", work), flights.run("b", work))
    assert sorted(results) == [1, 2]


async def test_nothing_is_kept_for_the_next_caller() -> None:
    flights, work = SingleFlight[str, int](), Work()
    work.finish.set()
    assert await flights.run("team", work) == 1
    assert await flights.run("team", work) == 2


async def test_an_error_goes_to_all_who_wait_and_to_nobody_later() -> None:
    flights, work = SingleFlight[str, int](), Work()
    work.error = ValueError("gone")
    tasks = await _joined(flights, work, 3)
    work.finish.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(result) for result in results] == ["gone"] * 3
    work.error = None
    assert await flights.run("team", work) == 2


async def test_a_caller_who_leaves_does_not_end_the_work_of_others() -> None:
    flights, work = SingleFlight[str, int](), Work()
    first, second = await _joined(flights, work, 2)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    work.finish.set()
    assert await second == 1
