"""The lab's NATS as settlement and its poisoners use it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from nats.aio.client import Client
from nats.js.api import StreamConfig
from nats.js.errors import NotFoundError, ServerError

from contracts.catalogue import STREAMS
from contracts.inference import (
    INFERENCE_RECORDED,
    INFERENCE_RECORDS,
    InferenceRecord,
    Outcome,
    UsageSource,
)
from kit.bus.consuming import Durable, Puller
from kit.bus.publishing import Publisher
from kit.bus.streams import config
from quotagate import stores
from quotagate.stores import StoreSettings

TIMEOUT_S = 10.0


def record(team_id: str, inference_id: str, attempt_no: int = 1) -> InferenceRecord:
    """Return a record without usage."""
    return InferenceRecord(
        inference_id=inference_id,
        attempt_no=attempt_no,
        team_id=team_id,
        api_key_id="key",
        provider="fake",
        model_asked="small",
        outcome=Outcome.FAILED,
        usage_source=UsageSource.MISSING,
        started_at_us=0,
    )


@contextlib.asynccontextmanager
async def empty_streams(settings: StoreSettings) -> AsyncIterator[Client]:
    """Connect as the operator, and make all streams anew, before and after.

    Their sequences begin with 1.
    """
    async with stores.bus(settings) as client:
        await _make_anew(client)
        try:
            yield client
        finally:
            await _make_anew(client)


async def _make_anew(client: Client) -> None:
    for made in STREAMS:
        await replace_stream(client, made.name, config(made, replicas=1))


async def replace_stream(client: Client, name: str, made: StreamConfig | None) -> None:
    """Remove a stream if it is there, and make it anew; None: leave it away."""
    jetstream = client.jetstream()
    with contextlib.suppress(NotFoundError):
        await jetstream.delete_stream(name)
    async with asyncio.timeout(TIMEOUT_S):
        while made is not None:
            try:
                await jetstream.add_stream(made)
            except ServerError:
                # The server is still removing the old one's files.
                await asyncio.sleep(0.05)
            else:
                return


async def publish(client: Client, inference: InferenceRecord) -> int:
    """Publish a record as the edge does; return its sequence."""
    ack = await Publisher(client).publish(
        INFERENCE_RECORDED, inference.team_id, inference, inference.message_id, TIMEOUT_S
    )
    return ack.seq


async def publish_bytes(client: Client, team_id: str, payload: bytes, message_id: str) -> int:
    """Publish something that may be no record; return its sequence."""
    ack = await Publisher(client).publish_raw(
        INFERENCE_RECORDED.subject_for(team_id),
        payload,
        message_id,
        INFERENCE_RECORDS.name,
        TIMEOUT_S,
    )
    return ack.seq


async def acknowledge(client: Client, count: int) -> None:
    """Take messages off the stream as settlement does, and acknowledge them."""
    puller = Puller(
        client,
        Durable(
            stream=INFERENCE_RECORDS.name,
            name="settlement",
            subjects=(INFERENCE_RECORDED.wildcard,),
            ack_wait_s=30,
            max_deliver=3,
            max_ack_pending=10_000,
        ),
    )
    await puller.open()
    left = count
    while left:
        for message in await puller.fetch(left, 1):
            await puller.ack(message)
            left -= 1
    await puller.close()
