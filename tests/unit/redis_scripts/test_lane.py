"""How calls are gathered into batches, without a server."""

import asyncio

import pytest

from redis_scripts.errors import OutcomeUnknownError
from redis_scripts.lane import Lane, ScriptCall
from redis_scripts.sources import Script

SCRIPT = Script("any", "return 1", "sha")


def call(number: int) -> ScriptCall:
    return ScriptCall(SCRIPT, (), (number,))


class Server:
    """Keeps the batches that arrive and answers each call with its own argument."""

    def __init__(self) -> None:
        self.batches: list[list[int | str]] = []
        self.open = asyncio.Event()
        self.open.set()

    async def send(self, batch: list[ScriptCall]) -> None:
        self.batches.append([call.arguments[0] for call in batch])
        await self.open.wait()
        for call in batch:
            call.answer(call.arguments[0])


async def test_calls_of_one_moment_leave_in_one_batch() -> None:
    server = Server()
    lane = Lane(server.send, max_batches=1, max_batch_calls=10)
    replies = await asyncio.gather(*(lane.run(call(number)) for number in range(5)))
    assert replies == [0, 1, 2, 3, 4]
    assert server.batches == [[0, 1, 2, 3, 4]]


async def test_a_batch_has_a_largest_size() -> None:
    server = Server()
    lane = Lane(server.send, max_batches=10, max_batch_calls=2)
    await asyncio.gather(*(lane.run(call(number)) for number in range(5)))
    assert server.batches == [[0, 1], [2, 3], [4]]


async def test_what_comes_while_all_batches_are_out_waits_and_leaves_together() -> None:
    server = Server()
    server.open.clear()
    lane = Lane(server.send, max_batches=1, max_batch_calls=10)
    first = asyncio.create_task(lane.run(call(0)))
    while not server.batches:
        await asyncio.sleep(0)
    others = [asyncio.create_task(lane.run(call(number))) for number in (1, 2, 3)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert server.batches == [[0]]

    server.open.set()

    assert await asyncio.gather(first, *others) == [0, 1, 2, 3]
    assert server.batches == [[0], [1, 2, 3]]


async def test_a_caller_who_leaves_while_waiting_is_not_sent() -> None:
    server = Server()
    server.open.clear()
    lane = Lane(server.send, max_batches=1, max_batch_calls=10)
    first = asyncio.create_task(lane.run(call(0)))
    while not server.batches:
        await asyncio.sleep(0)
    leaving = asyncio.create_task(lane.run(call(1)))
    staying = asyncio.create_task(lane.run(call(2)))
    await asyncio.sleep(0)

    leaving.cancel()
    server.open.set()

    assert [await first, await staying] == [0, 2]
    assert server.batches == [[0], [2]]
    with pytest.raises(asyncio.CancelledError):
        await leaving


async def test_if_all_who_wait_leave_nothing_is_sent() -> None:
    server = Server()
    lane = Lane(server.send, max_batches=1, max_batch_calls=10)
    leaving = asyncio.create_task(lane.run(call(0)))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    assert server.batches == []
    assert await lane.run(call(1)) == 1


async def test_a_batch_that_breaks_off_leaves_nobody_waiting() -> None:
    async def broken(batch: list[ScriptCall]) -> None:
        batch[0].answer("answered before")
        raise ZeroDivisionError

    lane = Lane(broken, max_batches=1, max_batch_calls=10)
    first = asyncio.create_task(lane.run(call(0)))
    second = asyncio.create_task(lane.run(call(1)))
    assert await first == "answered before"
    with pytest.raises(OutcomeUnknownError) as outcome:
        await second
    assert isinstance(outcome.value.__cause__, ZeroDivisionError)


async def test_a_failed_call_fails_alone() -> None:
    async def choosy(batch: list[ScriptCall]) -> None:
        for each in batch:
            if each.arguments[0] == 1:
                each.fail(OutcomeUnknownError())
            else:
                each.answer("done")

    lane = Lane(choosy, max_batches=1, max_batch_calls=10)
    outcomes = await asyncio.gather(
        *(lane.run(call(number)) for number in range(3)), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [str, OutcomeUnknownError, str]


async def test_draining_waits_for_what_is_out_and_what_waits() -> None:
    server = Server()
    server.open.clear()
    lane = Lane(server.send, max_batches=1, max_batch_calls=1)
    calls = [asyncio.create_task(lane.run(call(number))) for number in range(3)]
    draining = asyncio.create_task(lane.drain())
    while not server.batches:
        await asyncio.sleep(0)
    assert not draining.done()

    server.open.set()
    await draining

    assert [await each for each in calls] == [0, 1, 2]
