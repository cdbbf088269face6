"""A client whose messages reach who waits for them without a detour.

nats-py puts each message into a queue that a task of its subscription empties, writes through a
task of its own, and wraps each question in two more futures, an id of random numbers and a task for
its time-out. At one question a time that is the right price for its generality; the request path
asks three for each call. Here a message is handed over as it is read, what is published in one turn
of the loop leaves at its end, and a question is a number, a future and a timer.

This rests on four of the library's own parts, named in `DirectClient`; tests/integration/kit runs
all of it against a server, so a release of the library that changes them can't pass unnoticed.
"""

import asyncio
from collections.abc import Callable, Mapping
from itertools import count

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

Hear = Callable[[Msg], None]
"""Takes a message at once; it must not block, and what it raises ends the connection's reading."""

_STATUS = "Status"
_NO_RESPONDERS = "503"


class DirectClient(Client):
    """nats-py's client with a short way in, for those who `listen`, and out, for everybody."""

    def __init__(self) -> None:
        super().__init__()
        self._hearers: dict[int, Hear] = {}
        self._departure: asyncio.Handle | None = None

    def hand_to(self, subscription: Subscription, hear: Hear) -> None:
        """Give the messages of a subscription to `hear` instead of its callback."""
        self._hearers[subscription._id] = hear  # noqa: SLF001 # there is no other way to its number

    async def _process_msg(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes
    ) -> None:
        hear = self._hearers.get(sid)
        if hear is None:
            await super()._process_msg(sid, subject, reply, data, headers)
            return
        told = await self._process_headers(headers) if headers else None
        hear(self._build_message(sid, subject, reply, data, told))

    async def _flush_pending(self, force_flush: bool = False) -> None:  # noqa: FBT001, FBT002 # the library's
        if force_flush:
            await super()._flush_pending(force_flush=True)
        elif self._departure is None:
            self._departure = asyncio.get_running_loop().call_soon(self._depart)

    def _depart(self) -> None:
        """Write all that was published in this turn of the loop."""
        self._departure = None
        if not self._pending or not self.is_connected or self._transport is None:
            return  # what is left goes out with the next connection, as with the library's own way
        leaving, self._pending, self._pending_data_size = self._pending, [], 0
        try:
            self._transport.writelines(leaving)
        except (OSError, RuntimeError):
            return  # the connection is gone, which its reading notices; nobody gets an answer


async def listen(client: Client, subject: str, hear: Hear) -> Subscription:
    """Subscribe, and hear each message as soon as the client can say it."""

    async def pass_on(message: Msg) -> None:
        hear(message)

    subscription = await client.subscribe(subject, cb=pass_on)
    if isinstance(client, DirectClient):
        client.hand_to(subscription, hear)
    return subscription


class Asker:
    """Asks questions, and gets each answer in an inbox of its own."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._inbox: str | None = None
        self._opening = asyncio.Lock()
        self._numbers = count(1)
        self._waiting: dict[str, asyncio.Future[Msg]] = {}

    async def ask(
        self, subject: str, payload: bytes, timeout_s: float, headers: Mapping[str, str] | None
    ) -> Msg:
        """Return the first answer.

        Raises:
            nats.errors.NoRespondersError: nobody listens.
            nats.errors.TimeoutError: no answer in time.
            nats.errors.Error: not sent.

        """
        inbox = self._inbox or await self._opened()
        loop = asyncio.get_running_loop()
        number = str(next(self._numbers))
        answer: asyncio.Future[Msg] = loop.create_future()
        self._waiting[number] = answer
        timer = loop.call_later(timeout_s, _give_up, answer)
        try:
            await self._client.publish(
                subject, payload, reply=inbox + number, headers=dict(headers) if headers else None
            )
            message = await answer
        finally:
            timer.cancel()
            del self._waiting[number]
        if message.headers and message.headers.get(_STATUS) == _NO_RESPONDERS:
            raise nats.errors.NoRespondersError
        return message

    async def _opened(self) -> str:
        async with self._opening:
            if self._inbox is None:
                inbox = self._client.new_inbox() + "."
                await listen(self._client, inbox + "*", self._hear)
                self._inbox = inbox
            return self._inbox

    def _hear(self, message: Msg) -> None:
        answer = self._waiting.get(message.subject.rpartition(".")[2])
        if answer is not None and not answer.done():
            answer.set_result(message)


def _give_up(answer: asyncio.Future[Msg]) -> None:
    if not answer.done():
        answer.set_exception(nats.errors.TimeoutError())
