import asyncio

from kit.health import Health


async def test_a_service_is_not_ready_before_it_opened() -> None:
    health = Health()
    assert await health.problems() == {"service": "starting"}
    health.waiting("nats: refused")
    assert await health.problems() == {"service": "nats: refused"}
    health.opened()
    assert await health.problems() == {}


async def test_every_failing_check_is_named() -> None:
    health = Health()
    health.opened()

    async def fine() -> None:
        return None

    async def broken() -> str:
        return "no route"

    health.add("nats", fine)
    health.add("redis", broken)
    assert await health.problems() == {"redis": "no route"}


async def test_a_check_that_hangs_is_a_problem() -> None:
    health = Health()
    health.opened()

    async def hang() -> None:
        await asyncio.Event().wait()

    health.add("postgres", hang)
    assert await health.problems() == {"postgres": "no answer within a second"}


async def test_stopping_wins() -> None:
    health = Health()
    health.opened()
    health.stopping = True
    assert await health.problems() == {"service": "stopping"}
