"""When the stream of records stored what, told by the stream itself."""

import asyncio

import nats.errors
from faults.world import World
from nats.js.api import ConsumerConfig, DeliverPolicy, Header

from contracts.inference import INFERENCE_RECORDED, INFERENCE_RECORDS
from kit import background

_RETRY_S = 0.1
_NEXT_TIMEOUT_S = 1.0
_CATCHES_UP_WITHIN_S = 15
_UNSEEN = (OSError, TimeoutError, nats.errors.Error)


class StreamWitness:
    """Follows the stream from its first message on, over every restart of the server.

    It must follow at once: settlement may remove what is settled when the stream is nearly full.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._task: asyncio.Task[None] | None = None
        self._next = 1
        self.published_at_us: dict[str, int] = {}
        """By message id, unix microseconds of the NATS server's clock."""

    def start(self) -> None:
        """Begin to follow."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Follow no longer."""
        if self._task is not None:
            await background.cancel([self._task])

    async def catch_up(self) -> None:
        """Return once everything that the stream has was seen, or after a while."""
        try:
            async with asyncio.timeout(_CATCHES_UP_WITHIN_S), self._world.nats() as client:
                last = (await client.jetstream().stream_info(INFERENCE_RECORDS.name)).state.last_seq
                while self._next <= last:
                    await asyncio.sleep(_RETRY_S)
        except TimeoutError:
            return  # the last ones were removed before they were seen

    async def _run(self) -> None:
        while True:
            try:
                await self._follow()
            except _UNSEEN:
                await asyncio.sleep(_RETRY_S)

    async def _follow(self) -> None:
        async with self._world.nats() as client:
            subscription = await client.jetstream().subscribe(
                INFERENCE_RECORDED.wildcard,
                ordered_consumer=True,
                config=ConsumerConfig(
                    headers_only=True,
                    deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                    opt_start_seq=self._next,
                ),
            )
            while True:
                try:
                    message = await subscription.next_msg(timeout=_NEXT_TIMEOUT_S)
                except nats.errors.TimeoutError:
                    if not client.is_connected:
                        return
                    continue
                self._next = message.metadata.sequence.stream + 1
                message_id = (message.headers or {}).get(Header.MSG_ID.value)
                if message_id is not None:
                    at_us = int(message.metadata.timestamp.timestamp() * 1_000_000)
                    self.published_at_us.setdefault(message_id, at_us)
