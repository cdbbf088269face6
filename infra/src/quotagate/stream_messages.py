"""Reads the messages of a stream from its first to its last, without taking any off it."""

from collections.abc import AsyncIterator, Sequence

import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig

from quotagate.stores import CannotTellError

_BATCH = 1_000
_FETCH_TIMEOUT_S = 10.0
# The server forgets the reader by itself when the command was killed.
_FORGOTTEN_AFTER_S = 60.0


async def batches(
    client: Client, stream: str, subject: str, *, headers_only: bool = False
) -> AsyncIterator[Sequence[Msg]]:
    """Yield what the stream held on `subject` when asked, in its order, some hundred at a time.

    A message that is trimmed while we read is left out.

    Raises:
        CannotTellError: there is no such stream, or it stopped answering.

    """
    jetstream = client.jetstream(timeout=_FETCH_TIMEOUT_S)
    try:
        reader = await jetstream.pull_subscribe(
            subject,
            stream=stream,
            config=ConsumerConfig(
                ack_policy=AckPolicy.NONE,
                headers_only=headers_only,
                mem_storage=True,
                num_replicas=1,
                inactive_threshold=_FORGOTTEN_AFTER_S,
            ),
        )
    except nats.js.errors.NotFoundError:
        raise CannotTellError(f"nats: there is no stream {stream}") from None
    info = await reader.consumer_info()
    reader_name, waiting = info.name, info.num_pending or 0
    try:
        while waiting:
            try:
                messages = await reader.fetch(min(_BATCH, waiting), timeout=_FETCH_TIMEOUT_S)
            except TimeoutError:
                # Either somebody trimmed the rest away, or the server has stopped answering.
                waiting = (await reader.consumer_info()).num_pending or 0
                if waiting:
                    raise CannotTellError(f"nats: {stream} stopped answering") from None
                return
            yield messages
            waiting = min(waiting - len(messages), messages[-1].metadata.num_pending)
    finally:
        if client.is_connected:
            await reader.unsubscribe()
            await jetstream.delete_consumer(stream, reader_name)
