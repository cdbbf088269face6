"""Loops beside a service: told to stop, cancelled when they don't, fatal when they crash."""

import asyncio
import signal

from kit.background import cancel, running


async def test_a_loop_is_told_to_stop_and_waited_for() -> None:
    ended = asyncio.Event()

    async def loop(stop: asyncio.Event) -> None:
        await stop.wait()
        ended.set()

    async with running(loop, "loop", grace_s=60):
        assert not ended.is_set()
    assert ended.is_set()


async def test_a_loop_that_does_not_stop_is_cancelled() -> None:
    cancelled = asyncio.Event()

    async def loop(_stop: asyncio.Event) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with running(loop, "loop", grace_s=0.001):
        await asyncio.sleep(0)  # the loop begins
    assert cancelled.is_set()


async def test_a_cancellation_that_is_swallowed_is_repeated() -> None:
    """As `asyncio.wait_for` swallows one before Python 3.12 when its answer comes just then."""
    swallowed = 0

    async def loop() -> None:
        nonlocal swallowed
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if swallowed == 2:
                    raise
                swallowed += 1

    task = asyncio.create_task(loop())
    await asyncio.sleep(0)  # the loop begins
    await cancel([task])
    assert (task.cancelled(), swallowed) == (True, 2)


async def test_what_has_ended_is_not_waited_for() -> None:
    task = asyncio.create_task(asyncio.sleep(0))
    await task
    await cancel([task])
    await cancel([])
    assert not task.cancelled()


async def test_a_crash_ends_the_process() -> None:
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)

    async def loop(_stop: asyncio.Event) -> None:
        raise ValueError("a bug")

    try:
        async with running(loop, "loop", grace_s=1):
            await told.wait()
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
