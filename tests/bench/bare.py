"""The least that a gateway like ours can be in Python: its parts, with nothing of its work in them.

`python -m bench.bare PORT PROVIDER_URL` passes requests on, in one process: uvicorn, a bare route
of Starlette and the edge's own client for providers. With `--messages`, and the folder of a stack
that runs, it also sends what the edge sends for each request: two questions, which another
process answers at once, and a record that JetStream has synced. It knows no key, no limit and no
price, asks no Redis, and nobody settles. From the first of them to the second is the price of the
messages, from the second to ours that of the work.
"""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import nats.errors
import uvicorn
import uvloop
from nats.aio.msg import Msg
from nats.js.api import StreamConfig
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from edge_proxy.clients.origin import Origin
from kit.bus.connection import connection
from kit.bus.direct import Asker, listen
from kit.ids import new_id
from kit.settings import NatsSettings
from quotagate.stack import Stack
from quotagate.stores import of_servers

_HOST = "127.0.0.1"
_CONNECT_S = 5.0
_TIMEOUT_S = 5.0
_START_S = 20.0
_QUESTION = "bench.bare.question"
_RECORD = "bench.bare.record"
_STREAM = "BENCH_BARE"
_MESSAGE_BYTES = 700
"""About what a question, its answer and a record have."""


class _Messages:
    """What the edge sends for each request, to nobody in particular."""

    def __init__(self, questions: Asker, records: Asker) -> None:
        self._questions = questions
        self._records = records
        self._payload = b"x" * _MESSAGE_BYTES

    async def ask(self) -> None:
        await self._questions.ask(_QUESTION, self._payload, _TIMEOUT_S, None)

    async def record(self) -> None:
        headers = {"Nats-Msg-Id": new_id()}
        answer = await self._records.ask(_RECORD, self._payload, _TIMEOUT_S, headers)
        if b'"seq"' not in answer.data:
            raise RuntimeError(f"the stream refused a record: {answer.data!r}")


def _app(provider_url: str, stack: Path | None) -> Starlette:
    origin = Origin(provider_url, _CONNECT_S)
    messages: _Messages | None = None

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        nonlocal messages
        async with contextlib.AsyncExitStack() as opened:
            if stack is not None:
                messages = await opened.enter_async_context(_opened(stack))
            yield
        await origin.close()

    async def chat(request: Request) -> Response:
        body = await request.body()
        if messages is not None:
            await messages.ask()
        headers = (("content-type", "application/json"), ("authorization", "Bearer fake"))
        answer = await origin.execute("POST", "/chat/completions", headers, body)
        content = b""
        while await answer.more():
            content += answer.take()
        if messages is not None:
            await messages.ask()
            await messages.record()
        return Response(content, answer.status, {"content-type": "application/json"})

    return Starlette(
        routes=[Route("/v1/chat/completions", chat, methods=["POST"])], lifespan=lifespan
    )


@contextlib.asynccontextmanager
async def _opened(stack: Path) -> AsyncIterator[_Messages]:
    settings = _settings(stack)
    # Records have a connection of their own, as at the edge.
    async with connection(settings, "bare") as client, connection(settings, "bare") as records:
        await client.jetstream().add_stream(StreamConfig(name=_STREAM, subjects=[_RECORD]))
        answering = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.bare", "answer", "--messages", str(stack)
        )
        try:
            asker = Asker(client)
            await _answered(asker)
            yield _Messages(asker, Asker(records))
        finally:
            answering.terminate()
            await answering.wait()


async def _answered(asker: Asker) -> None:
    """Return once somebody answers."""
    async with asyncio.timeout(_START_S):
        while True:
            with contextlib.suppress(nats.errors.NoRespondersError):
                await asker.ask(_QUESTION, b"", _TIMEOUT_S, None)
                return
            await asyncio.sleep(0.1)


def _settings(stack: Path) -> NatsSettings:
    return of_servers(Stack(stack).servers)


async def _answer(stack: Path) -> None:
    """Answer every question at once, until told to stop."""
    async with connection(_settings(stack), "bare") as client:
        payload = b"x" * _MESSAGE_BYTES
        tasks: set[asyncio.Task[None]] = set()

        def hear(message: Msg) -> None:
            task = asyncio.get_running_loop().create_task(client.publish(message.reply, payload))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        await listen(client, _QUESTION, hear)
        await asyncio.Event().wait()


def main() -> None:
    """Serve, or answer, until told to stop."""
    parser = argparse.ArgumentParser(prog="bench.bare", description=__doc__.splitlines()[0])
    parser.add_argument("port", help="or `answer`: be the process that answers the questions")
    parser.add_argument("provider_url", nargs="?", default="")
    parser.add_argument("--messages", type=Path, help="the folder of the stack that takes them")
    options = parser.parse_args()
    if options.port == "answer":
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_answer(options.messages))
    app = _app(options.provider_url, options.messages)
    uvicorn.run(
        app, host=_HOST, port=int(options.port), loop="uvloop", http="httptools",
        log_level="warning", access_log=False,
    )  # fmt: skip


if __name__ == "__main__":
    main()
