"""Heads of requests have a deadline, and an application can see and cut its client."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from kit import http_connection
from kit.http_connection import BoundedProtocol, connection_of

REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


@contextlib.asynccontextmanager
async def serving(app: ASGIApp) -> AsyncIterator[int]:
    """Serve an application with the protocol; return the port."""
    loop = asyncio.get_running_loop()
    config = uvicorn.Config(app, log_config=None, lifespan="off", access_log=False)
    config.load()
    state = ServerState()
    server = await loop.create_server(
        lambda: BoundedProtocol(config, state, {}, loop), "127.0.0.1", 0
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for connection in list(state.connections):
            connection.shutdown()
        if state.tasks:
            await asyncio.wait(state.tasks)


async def answer(_scope: Scope, _receive: Receive, send: Send) -> None:
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(REQUEST[:-2], id="all but the last line"),
    ],
)
async def test_a_head_that_does_not_come(monkeypatch: pytest.MonkeyPatch, head: bytes) -> None:
    monkeypatch.setattr(http_connection, "HEAD_TIMEOUT_S", 0.05)
    async with serving(answer) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()


async def test_a_second_head_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "HEAD_TIMEOUT_S", 0.05)
    async with serving(answer) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST + REQUEST[:-2])
        with contextlib.suppress(ConnectionResetError):
            said = await reader.read()
            assert said.count(b"HTTP/1.1 200") == 1
        writer.close()


async def test_an_answer_may_take_longer_than_a_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "HEAD_TIMEOUT_S", 0.05)

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(0.2)
        await answer(scope, receive, send)

    async with serving(slow) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_an_application_sees_its_client_leave() -> None:
    states: asyncio.Queue[bool] = asyncio.Queue()

    async def watch(scope: Scope, receive: Receive, send: Send) -> None:
        connection = connection_of(scope)
        assert connection is not None
        states.put_nowait(connection.gone)
        while (await receive())["type"] != "http.disconnect":
            pass
        states.put_nowait(connection.gone)
        await answer(scope, receive, send)

    async with serving(watch) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST)
        assert not await states.get()
        writer.close()
        assert await states.get()


async def test_an_application_cuts_its_client() -> None:
    async def cut(scope: Scope, _receive: Receive, _send: Send) -> None:
        connection = connection_of(scope)
        assert connection is not None
        connection.cut()
        assert connection.gone

    async with serving(cut) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()


def test_another_server_gives_no_connection() -> None:
    assert connection_of({"type": "http"}) is None
