"""Each trouble of a wire, on a real server that echoes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from faults.wiring import Trouble, Wiring


class Echo:
    """Answers every line with itself, and remembers it."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.heard = asyncio.Event()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                self.lines.append(line)
                self.heard.set()
                writer.write(line)
                await writer.drain()
        except OSError:
            return
        finally:
            writer.close()


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    echo = Echo()
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    echo.port = server.sockets[0].getsockname()[1]
    yield echo
    server.close()


@pytest.fixture
def wiring(echo: Echo) -> Iterator[Wiring]:
    wiring = Wiring()
    wiring.link("here>there", ("127.0.0.1", echo.port))
    yield wiring
    wiring.close()


class Caller:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def say(self, line: bytes) -> None:
        self._writer.write(line)
        await self._writer.drain()

    async def hear(self) -> bytes:
        """Return the next line; nothing: the connection is over."""
        try:
            return await self._reader.readline()
        except OSError:
            return b""

    def leave(self) -> None:
        self._writer.close()


@asynccontextmanager
async def _connected(wiring: Wiring) -> AsyncIterator[Caller]:
    reader, writer = await asyncio.open_connection("127.0.0.1", wiring.links["here>there"].port)
    yield Caller(reader, writer)
    writer.close()


async def _is_reset(wiring: Wiring) -> bool:
    try:
        async with _connected(wiring) as caller:
            return await caller.hear() == b""
    except ConnectionError:
        return True


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def test_a_wire_without_trouble_carries(wiring: Wiring) -> None:
    async with _connected(wiring) as caller:
        for line in (b"one\n", b"two\n"):
            await caller.say(line)
            assert await caller.hear() == line


async def test_lost_replies_leave_the_request_done(wiring: Wiring, echo: Echo) -> None:
    async with _connected(wiring) as caller:
        await wiring.begin("here>there", Trouble(lose_replies=True))
        await caller.say(b"done?\n")
        await _until(lambda: wiring.links["here>there"].lost_bytes == len(b"done?\n"))
        await wiring.end("here>there")
        assert await caller.hear() == b""
        assert echo.lines == [b"done?\n"]


async def test_lost_requests_never_arrive(wiring: Wiring, echo: Echo) -> None:
    async with _connected(wiring) as caller:
        await caller.say(b"before\n")
        await caller.hear()
        await wiring.begin("here>there", Trouble(lose_requests=True))
        await caller.say(b"lost\n")
        hearing = asyncio.create_task(caller.hear())
        await _until(lambda: wiring.links["here>there"].lost_bytes == len(b"lost\n"))
        await wiring.end("here>there")
        assert await hearing == b""
        assert echo.lines == [b"before\n"]


async def test_held_requests_arrive_late_also_from_a_caller_who_left(
    wiring: Wiring, echo: Echo
) -> None:
    await wiring.begin("here>there", Trouble(hold_requests=True))
    async with _connected(wiring) as caller:
        await caller.say(b"late\n")
        await _until(lambda: wiring.links["here>there"].taken_bytes == len(b"late\n"))
        caller.leave()
    assert not echo.lines
    await wiring.end("here>there")
    await echo.heard.wait()
    assert echo.lines == [b"late\n"]


async def test_held_replies_arrive_late(wiring: Wiring, echo: Echo) -> None:
    async with _connected(wiring) as caller:
        await wiring.begin("here>there", Trouble(hold_replies=True))
        await caller.say(b"slow\n")
        await echo.heard.wait()
        assert wiring.links["here>there"].lost_bytes == 0
        hearing = asyncio.create_task(caller.hear())
        await wiring.end("here>there")
        assert await hearing == b"slow\n"


async def test_a_delay_keeps_the_order(wiring: Wiring) -> None:
    await wiring.begin("here>there", Trouble(delay_s=0.05))
    async with _connected(wiring) as caller:
        started_s = asyncio.get_running_loop().time()
        for line in (b"one\n", b"two\n"):
            await caller.say(line)
        assert [await caller.hear(), await caller.hear()] == [b"one\n", b"two\n"]
        assert asyncio.get_running_loop().time() - started_s >= 0.1


async def test_a_cut_ends_connections_and_new_ones_work(wiring: Wiring) -> None:
    async with _connected(wiring) as caller:
        await caller.say(b"one\n")
        await caller.hear()
        await wiring.cut("here>there")
        assert await caller.hear() == b""
    async with _connected(wiring) as caller:
        await caller.say(b"two\n")
        assert await caller.hear() == b"two\n"


async def test_refused_connections_end_at_once_until_it_is_over(wiring: Wiring) -> None:
    await wiring.begin("here>there", Trouble(refuse=True))
    assert await _is_reset(wiring)
    await wiring.end_all()
    async with _connected(wiring) as caller:
        await caller.say(b"again\n")
        assert await caller.hear() == b"again\n"


async def test_a_server_that_is_gone_looks_like_a_cut() -> None:
    wiring = Wiring()
    try:
        # Port 1 is nobody's.
        wiring.link("here>there", ("127.0.0.1", 1))
        assert await _is_reset(wiring)
    finally:
        wiring.close()


def test_programs_are_led_to_wires_of_their_own(wiring: Wiring) -> None:
    environment = {
        "QUOTAGATE_PORT": "8080",
        "QUOTAGATE_REDIS_URL": "redis://admission:secret@127.0.0.1:6379/0",
        "QUOTAGATE_NATS_URL": "nats://127.0.0.1:4222",
    }
    led = wiring.rewire("admission-2", environment)
    valkey, nats = wiring.links["admission-2>valkey"], wiring.links["admission-2>nats"]
    assert led == {
        "QUOTAGATE_PORT": "8080",
        "QUOTAGATE_REDIS_URL": f"redis://admission:secret@127.0.0.1:{valkey.port}/0",
        "QUOTAGATE_NATS_URL": f"nats://127.0.0.1:{nats.port}",
    }
    assert valkey.target == ("127.0.0.1", 6379)
    assert wiring.rewire("admission-2", environment) == led
