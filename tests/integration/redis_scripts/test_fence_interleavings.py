"""Every order in which a few actors' steps can interleave, each run on a real server."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence

import pytest
from integration.redis_scripts.fence_world import Credit, Look, World

from redis_scripts import RedisScripts, SettledBalance

Actor = Callable[[World], Iterator[Awaitable[object] | None]]

# An actor yields after each of its steps: a call to await, or None for a step in the database.


def balance_fill(world: World) -> Iterator[Awaitable[object] | None]:
    settled: SettledBalance = world.read_balance()
    yield None
    yield world.fill_balance(settled)


def credit(world: World) -> Iterator[Awaitable[object] | None]:
    news: Credit = world.credit(10)
    yield None
    yield world.adjust_balance(news)


def credit_told_twice(world: World) -> Iterator[Awaitable[object] | None]:
    news: Credit = world.credit(10)
    yield None
    yield world.adjust_balance(news)
    yield world.adjust_balance(news)


def settlement(world: World) -> Iterator[Awaitable[object] | None]:
    settled = world.commit(-3)
    yield None
    yield world.refresh_balance(settled)


def rough_debit(world: World) -> Iterator[Awaitable[object] | None]:
    yield world.debit(4)


def repair(world: World) -> Iterator[Awaitable[object] | None]:
    look: Look = world.look()
    yield None
    yield world.repair_balance(look)


def tier_fill(world: World) -> Iterator[Awaitable[object] | None]:
    version = world.read_tier()
    yield None
    yield world.fill_tier(version)


def tier_change(world: World) -> Iterator[Awaitable[object] | None]:
    version = world.change_tier()
    yield None
    yield world.evict_tier(version)


def tier_change_told_twice(world: World) -> Iterator[Awaitable[object] | None]:
    version = world.change_tier()
    yield None
    yield world.evict_tier(version)
    yield world.evict_tier(version)


STEPS: dict[Actor, int] = {credit_told_twice: 3, tier_change_told_twice: 3, rough_debit: 1}


def orders(steps: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield every sequence in which actor `i` occurs `steps[i]` times."""
    left = Counter(dict(enumerate(steps)))

    def extend(order: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(order) == sum(steps):
            yield order
            return
        for actor in range(len(steps)):
            if left[actor]:
                left[actor] -= 1
                yield from extend((*order, actor))
                left[actor] += 1

    return extend(())


@pytest.mark.parametrize("cached", [False, True], ids=["nothing cached", "cached"])
@pytest.mark.parametrize(
    ("actors", "count"),
    [
        pytest.param(
            (balance_fill, credit_told_twice, settlement, rough_debit),
            1680,
            id="fill, credit told twice, settlement, rough debit",
        ),
        pytest.param(
            (balance_fill, balance_fill, credit, credit), 2520, id="two fills, two credits"
        ),
        pytest.param(
            (balance_fill, credit, settlement, settlement),
            2520,
            id="fill, credit, two settlements",
        ),
        pytest.param(
            (repair, rough_debit, credit, settlement),
            630,
            id="repair, rough debit, credit, settlement",
        ),
        pytest.param(
            (repair, rough_debit, rough_debit, settlement),
            180,
            id="repair, two rough debits, settlement",
        ),
        pytest.param(
            (tier_fill, tier_fill, tier_change, tier_change),
            2520,
            id="two tier fills, two tier changes",
        ),
        pytest.param(
            (tier_fill, tier_change_told_twice, tier_change),
            210,
            id="tier fill, tier change told twice, another tier change",
        ),
    ],
)
async def test_every_order_ends_with_the_newest(
    scripts: RedisScripts, actors: tuple[Actor, ...], count: int, *, cached: bool
) -> None:
    run = uuid.uuid4().hex[:12]
    every = list(orders([STEPS.get(actor, 2) for actor in actors]))
    assert len(every) == count

    async def play(number: int, order: tuple[int, ...]) -> None:
        world = World(scripts, f"order-{run}-{number}")
        if cached:
            await world.fill_tier(world.read_tier())
            await world.fill_balance(world.read_balance())
        running = [actor(world) for actor in actors]
        for actor in order:
            step = next(running[actor])
            if step is not None:
                await step
        await world.settle_down()

    for start in range(0, len(every), 500):
        chunk = every[start : start + 500]
        await asyncio.gather(*(play(start + i, order) for i, order in enumerate(chunk)))
