"""Pull batches from a stream through a durable consumer."""

from collections.abc import Sequence
from dataclasses import dataclass

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from kit.bus.errors import DisconnectedError, NoReplyError
from kit.errors import NotReadyError


@dataclass(frozen=True, slots=True)
class Durable:
    """A durable pull consumer, shared by all replicas of a service."""

    stream: str
    name: str
    subjects: tuple[str, ...]
    ack_wait_s: float
    """Well above the longest time a batch takes, or it is delivered again while being handled."""
    max_deliver: int
    """Attempts before the server gives a message up and says so in an advisory."""
    max_ack_pending: int


class Puller:
    """Fetches batches for one durable consumer."""

    def __init__(self, client: Client, durable: Durable) -> None:
        self._client = client
        self._durable = durable
        self._subscription: nats.js.JetStreamContext.PullSubscription | None = None

    async def open(self) -> None:
        """Create the consumer or bring it to its configuration, and bind to it.

        Raises:
            NotReadyError: the stream is missing, or JetStream doesn't answer.

        """
        durable = self._durable
        jetstream = self._client.jetstream()
        try:
            await jetstream.add_consumer(
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
            self._subscription = await jetstream.pull_subscribe_bind(
                consumer=durable.name, stream=durable.stream
            )
        except (nats.errors.Error, TimeoutError) as error:
            raise NotReadyError(f"consumer {durable.name}: {type(error).__name__}") from error

    async def fetch(self, batch: int, wait_s: float) -> Sequence[Msg]:
        """Return up to `batch` messages, none when nothing came within `wait_s`.

        Raises:
            DisconnectedError: there is no connection.

        """
        if self._subscription is None:
            raise RuntimeError("open() comes before fetch()")
        try:
            return await self._subscription.fetch(batch, timeout=wait_s)
        except TimeoutError:
            return ()
        except nats.errors.Error as error:
            raise DisconnectedError(f"fetch: {type(error).__name__}") from error

    @staticmethod
    async def ack(message: Msg, timeout_s: float = 5.0) -> None:
        """Acknowledge with confirmation: returns when the server has stored the ack.

        Raises:
            NoReplyError: not confirmed; the message may come again, which must change nothing.

        """
        try:
            await message.ack_sync(timeout=timeout_s)
        except (nats.errors.Error, TimeoutError) as error:
            raise NoReplyError("the acknowledgement was not confirmed") from error
