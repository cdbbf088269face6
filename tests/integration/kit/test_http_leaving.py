"""A server that is told to stop closes no connection under a request that is on its way."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from kit import http_leaving
from kit.http_leaving import LeavingProtocol

REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
FAREWELL = b"connection: close"


class Service:
    """An application that answers `hello`, and when it goes on is up to the test."""

    def __init__(self) -> None:
        self.state = ServerState()
        self.port = 0
        self.asked = asyncio.Event()
        self.may_begin = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_begin.set()
        self.may_end.set()

    async def app(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        self.asked.set()
        await self.may_begin.wait()
        headers = [(b"content-length", b"5")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"he", "more_body": True})
        await self.may_end.wait()
        await send({"type": "http.response.body", "body": b"llo"})

    def is_told_to_stop(self) -> None:
        for connection in list(self.state.connections):
            connection.shutdown()


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    service = Service()
    loop = asyncio.get_running_loop()
    config = uvicorn.Config(service.app, interface="asgi3", log_config=None, lifespan="off")
    config.load()
    server = await loop.create_server(
        lambda: LeavingProtocol(config, service.state, {}, loop), "127.0.0.1", 0
    )
    service.port = server.sockets[0].getsockname()[1]
    yield service
    server.close()
    for connection in list(service.state.connections):
        assert isinstance(connection, LeavingProtocol)
        connection.transport.abort()


@contextlib.asynccontextmanager
async def client_of(
    service: Service,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect, and have one answer that leaves the connection open."""
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    try:
        writer.write(REQUEST)
        assert FAREWELL not in await reader.readuntil(b"hello")
        service.asked.clear()
        yield reader, writer
    finally:
        writer.transport.abort()


async def test_a_request_that_was_on_its_way_is_answered(service: Service) -> None:
    async with client_of(service) as (reader, writer):
        service.is_told_to_stop()
        writer.write(REQUEST)
        assert FAREWELL in await reader.readuntil(b"hello")
        assert await reader.read() == b""


async def test_an_answer_that_has_not_begun_is_the_last_and_says_so(service: Service) -> None:
    service.may_begin.clear()
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    writer.write(REQUEST)
    await service.asked.wait()
    service.is_told_to_stop()
    service.may_begin.set()
    assert FAREWELL in await reader.readuntil(b"hello")
    assert await reader.read() == b""
    writer.close()


async def test_after_an_answer_that_had_begun_there_may_be_another(service: Service) -> None:
    async with client_of(service) as (reader, writer):
        service.may_end.clear()
        writer.write(REQUEST)
        await reader.readuntil(b"\r\n\r\nhe")
        service.is_told_to_stop()
        service.may_end.set()
        assert await reader.readexactly(3) == b"llo"
        writer.write(REQUEST)
        assert FAREWELL in await reader.readuntil(b"hello")
        assert await reader.read() == b""


async def test_who_asks_nothing_is_not_waited_for(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_leaving, "LINGER_S", 0.05)
    async with client_of(service) as (reader, _):
        service.is_told_to_stop()
        assert await reader.read() == b""
