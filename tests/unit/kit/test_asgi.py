"""How a service opens, closes where it must, and opens again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from kit.asgi import lifespan
from kit.errors import NotReadyError, UnsafeServerError
from kit.health import Health


class Server:
    """What a service needs; its configuration and its presence change."""

    def __init__(self) -> None:
        self.flaw: str | None = None
        self.away = False
        self.looks = asyncio.Event()
        self.log: list[str] = []

    async def guard(self) -> None:
        self.looks.set()
        if self.away:
            raise NotReadyError("no answer")
        if self.flaw is not None:
            raise UnsafeServerError(self.flaw)

    async def was_looked_at(self) -> None:
        """Return after one whole look more."""
        for _ in range(2):
            self.looks.clear()
            await self.looks.wait()


@contextlib.asynccontextmanager
async def _running(server: Server, health: Health) -> AsyncIterator[None]:
    async def open_service(stack: contextlib.AsyncExitStack) -> None:
        await health.guard(server.guard)
        server.log.append("opened")
        stack.callback(server.log.append, "closed")

    async with lifespan(open_service, health)(None):
        yield


async def _becomes(health: Health, problems: dict[str, str]) -> None:
    async with asyncio.timeout(10):
        while await health.problems() != problems:
            await asyncio.sleep(0)


@pytest.fixture
def server() -> Server:
    return Server()


async def test_a_service_whose_server_becomes_unsafe_closes_until_it_is_mended(
    server: Server,
) -> None:
    health = Health(recheck_s=0.001)
    async with _running(server, health):
        await _becomes(health, {})
        server.flaw = "it forgets"
        await _becomes(health, {"service": "it forgets"})
        await server.was_looked_at()
        assert not health.is_open
        assert server.log == ["opened", "closed"]
        server.flaw = None
        await _becomes(health, {})
    assert server.log == ["opened", "closed"] * 2


async def test_a_server_that_does_not_answer_closes_nothing(server: Server) -> None:
    health = Health(recheck_s=0.001)
    async with _running(server, health):
        await _becomes(health, {})
        server.away = True
        await server.was_looked_at()
        assert health.is_open
        assert server.log == ["opened"]


async def test_a_service_does_not_open_on_an_unsafe_server(server: Server) -> None:
    server.flaw = "it forgets"
    health = Health(recheck_s=0.001)
    async with _running(server, health):
        await _becomes(health, {"service": "it forgets"})
    assert server.log == []


async def test_told_to_stop_it_looks_no_more(server: Server) -> None:
    health = Health(recheck_s=3600)
    async with asyncio.timeout(10), _running(server, health):
        await _becomes(health, {})
    assert server.log == ["opened", "closed"]
    assert await health.problems() == {"service": "stopping"}
