"""Makes the JetStream streams and buckets of the catalogue; safe to repeat."""

from dataclasses import replace

from contracts.catalogue import BUCKETS, STREAMS
from contracts.inference import INFERENCE_RECORDS
from kit.bus.buckets import ensure_buckets
from kit.bus.connection import connection
from kit.bus.streams import ensure_streams
from kit.settings import NatsSettings


async def make_streams(
    settings: NatsSettings,
    replicas: int = 1,
    record_max_bytes: int = INFERENCE_RECORDS.max_bytes,
) -> None:
    """Create every stream and bucket, or bring it to its configuration, as a user who may.

    `record_max_bytes` is what the stream of inference records may hold before publishers are
    refused. Less than it holds drops nothing: it takes no more until it was trimmed.

    Raises:
        NotReadyError: NATS or its JetStream doesn't answer, or refuses our user.

    """
    streams = [
        replace(stream, max_bytes=record_max_bytes) if stream is INFERENCE_RECORDS else stream
        for stream in STREAMS
    ]
    async with connection(settings, "quotagate") as client:
        await ensure_streams(client, streams, replicas)
        await ensure_buckets(client, BUCKETS, replicas)
