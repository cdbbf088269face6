"""How the loops wait."""

import asyncio

import pytest

from settlement.errors import StoreUnavailableError
from settlement.handlers.metrics import FAILURES
from settlement.handlers.pace import every, pause

_FAR_S = 60.0


async def test_a_pause_ends_when_one_of_its_wakers_is_set() -> None:
    first, second = asyncio.Event(), asyncio.Event()
    waiting = asyncio.create_task(pause(_FAR_S, first, second))
    second.set()
    async with asyncio.timeout(_FAR_S / 2):
        await waiting
    assert not first.is_set()


async def test_a_pause_ends_by_itself() -> None:
    await pause(0.001, asyncio.Event())


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(StoreUnavailableError(), id="a store that is down"),
        pytest.param(ZeroDivisionError(), id="a bug"),
    ],
)
async def test_a_round_that_fails_is_counted_and_followed_by_the_next(failure: Exception) -> None:
    stop = asyncio.Event()
    rounds = 0

    async def tick() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            raise failure
        stop.set()

    before = FAILURES.labels("test")._value.get()
    await every(0.001, tick, "test")(stop)
    assert rounds == 2
    assert FAILURES.labels("test")._value.get() == before + 1
