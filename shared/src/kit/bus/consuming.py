"""Pull batches from a stream through a durable consumer.

The library's own `fetch` waits for a batch to fill until its time is over, so one lone message
would be handed out late. Here the wait is for the first message; what else is there comes with it.
"""

import asyncio
import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, Header, StatusCode

from kit.bus.direct import Asker, listen
from kit.bus.errors import DisconnectedError, NoReplyError
from kit.errors import NotReadyError

# How much longer than the server we wait for its word that a request has expired.
_MARGIN_S = 1.0
_NS_PER_S = 10**9
_ACK = b"+ACK"
_NOTHING_MORE = frozenset({StatusCode.NO_MESSAGES.value, StatusCode.REQUEST_TIMEOUT.value})


@dataclass(frozen=True, slots=True)
class Durable:
    """A durable pull consumer, shared by all replicas of a service."""

    stream: str
    name: str
    subjects: tuple[str, ...]
    ack_wait_s: float
    """Well above the longest time a batch takes, or it is delivered again while being handled."""
    max_deliver: int
    """Attempts before the server gives a message up and says so in an advisory; -1: no end."""
    max_ack_pending: int


class Puller:
    """Fetches batches for one durable consumer. One fetch at a time."""

    def __init__(self, client: Client, durable: Durable) -> None:
        self._client = client
        self._asker = Asker(client)
        self._durable = durable
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{durable.stream}.{durable.name}"
        self._inbox = client.new_inbox()
        self._requests = 0
        self._subscription: Subscription | None = None
        self._arrived: deque[Msg] = deque()
        self._arrival = asyncio.Event()

    async def open(self) -> None:
        """Create the consumer or bring it to its configuration. May be repeated.

        Raises:
            NotReadyError: the stream is missing, or JetStream doesn't answer.

        """
        durable = self._durable
        try:
            await self._client.jetstream().add_consumer(
                durable.stream,
                ConsumerConfig(
                    durable_name=durable.name,
                    filter_subjects=list(durable.subjects),
                    deliver_policy=DeliverPolicy.ALL,
                    ack_policy=AckPolicy.EXPLICIT,
                    ack_wait=durable.ack_wait_s,
                    max_deliver=durable.max_deliver,
                    max_ack_pending=durable.max_ack_pending,
                ),
            )
            if self._subscription is None:
                self._subscription = await listen(self._client, f"{self._inbox}.*", self._receive)
        except (nats.errors.Error, TimeoutError) as error:
            raise NotReadyError(f"consumer {durable.name}: {type(error).__name__}") from error

    async def close(self) -> None:
        """Take no more messages; those that were fetched may still be acknowledged."""
        if self._subscription is not None and self._client.is_connected:
            await self._subscription.unsubscribe()
        self._subscription = None

    async def fetch(self, batch: int, wait_s: float, gather_s: float = 0) -> Sequence[Msg]:
        """Return what is there, `batch` messages at most, as soon as there is one.

        Nothing when nothing came within `wait_s`. Where a batch costs much whatever is in it, the
        first message may wait `gather_s` for others; it doesn't when a batch is there already.

        Raises:
            DisconnectedError: there is no connection, or the consumer is gone; then `open` again.

        """
        messages = await self._pull({"batch": 1, "expires": int(wait_s * _NS_PER_S)}, wait_s)
        if messages and batch > 1:
            if gather_s and messages[0].metadata.num_pending < batch - 1:
                await asyncio.sleep(gather_s)
            try:
                messages += await self._pull({"batch": batch - 1, "no_wait": True}, 0)
            except DisconnectedError:
                pass  # the next fetch will meet it too; what came must not wait for that
        return messages

    async def _pull(self, request: dict[str, int | bool], wait_s: float) -> list[Msg]:
        """Ask the server once; return when it has sent all it will send for this request."""
        if self._subscription is None:
            raise RuntimeError("open() comes before fetch()")
        self._requests += 1
        inbox = f"{self._inbox}.{self._requests}"
        messages: list[Msg] = []
        try:
            await self._client.publish(self._next, json.dumps(request).encode(), reply=inbox)
        except nats.errors.Error as error:
            raise DisconnectedError(f"fetch: {type(error).__name__}") from error
        try:
            async with asyncio.timeout(wait_s + _MARGIN_S):
                while len(messages) < request["batch"]:
                    message = await self._next_arrival()
                    status = (message.headers or {}).get(Header.STATUS.value)
                    if not status:
                        messages.append(message)
                    elif message.subject == inbox:  # others are late words on earlier requests
                        if status not in _NOTHING_MORE:
                            raise DisconnectedError(f"fetch: status {status}")
                        break
        except TimeoutError:
            pass  # the connection was lost, and the request with it
        return messages

    def _receive(self, message: Msg) -> None:
        self._arrived.append(message)
        self._arrival.set()

    async def _next_arrival(self) -> Msg:
        while not self._arrived:
            self._arrival.clear()
            await self._arrival.wait()
        return self._arrived.popleft()

    async def ack(self, message: Msg, timeout_s: float = 5.0) -> None:
        """Acknowledge with confirmation: returns when the server has stored the ack.

        Raises:
            NoReplyError: not confirmed; the message may come again, which must change nothing.

        """
        try:
            await self._asker.ask(message.reply, _ACK, timeout_s, None)
        except (nats.errors.Error, TimeoutError) as error:
            raise NoReplyError("the acknowledgement was not confirmed") from error

    async def ack_all(self, messages: Sequence[Msg], timeout_s: float = 5.0) -> None:
        """Acknowledge a batch with one confirmation.

        The server takes what one connection says in order: its word that it has stored the last
        acknowledgement says so of all.

        Raises:
            NoReplyError: not confirmed; any of the messages may come again, which must change
                nothing.

        """
        if not messages:
            return
        try:
            for message in messages[:-1]:
                await self._client.publish(message.reply, _ACK)
        except nats.errors.Error as error:
            raise NoReplyError("the acknowledgements were not sent") from error
        await self.ack(messages[-1], timeout_s)

    @staticmethod
    async def still_working(message: Msg) -> None:
        """Start the message's `ack_wait` anew, because handling it takes long.

        Raises:
            DisconnectedError: there is no connection.

        """
        try:
            await message.in_progress()
        except nats.errors.Error as error:
            raise DisconnectedError from error

    @staticmethod
    async def give_back(message: Msg, delay_s: float = 0) -> None:
        """Let the message be delivered again, to any replica, after `delay_s`.

        Raises:
            DisconnectedError: there is no connection; it comes again after `ack_wait`.

        """
        try:
            await message.nak(delay=delay_s or None)
        except nats.errors.Error as error:
            raise DisconnectedError from error
