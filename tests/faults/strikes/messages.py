"""Messages that come again, or in another order."""

from collections.abc import Sequence

from faults.strikes.fault import Fault, Kind
from faults.world import World
from nats.js import JetStreamContext
from nats.js.api import Header, RawStreamMsg
from nats.js.errors import NotFoundError

from contracts.contract import Stream
from contracts.control import CONTROL_EVENTS
from contracts.inference import INFERENCE_RECORDS

_HOW_MANY = 40


async def repeat(world: World, fault: Fault) -> None:
    """Publish the latest messages of a stream again, as the fault's kind says."""
    stream = CONTROL_EVENTS if fault.kind is Kind.REPEAT_CHANGES else INFERENCE_RECORDS
    async with world.nats() as client:
        jetstream = client.jetstream()
        messages = await _latest(jetstream, stream)
        if fault.kind in {Kind.REORDER, Kind.REPEAT_CHANGES}:
            messages = messages[::-1]
        for message in messages:
            message_id = (message.headers or {}).get(Header.MSG_ID.value)
            with_id = fault.kind is Kind.REPEAT and message_id is not None
            await jetstream.publish(
                message.subject or "",
                message.data or b"",
                headers={Header.MSG_ID.value: message_id or ""} if with_id else None,
            )


async def _latest(jetstream: JetStreamContext, stream: Stream) -> Sequence[RawStreamMsg]:
    last = (await jetstream.stream_info(stream.name)).state.last_seq
    messages = []
    for sequence in range(max(1, last - _HOW_MANY + 1), last + 1):
        try:
            messages.append(await jetstream.get_msg(stream.name, sequence))
        except NotFoundError:
            continue
    return messages
