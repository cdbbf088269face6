"""Make the streams of the catalogue, and check that an acknowledgement means durable."""

from collections.abc import Iterable

import httpx
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig

from contracts.contract import Stream
from kit.errors import NotReadyError, UnsafeServerError
from kit.settings import NatsSettings

_API_TIMEOUT_S = 5.0


def config(stream: Stream, replicas: int) -> StreamConfig:
    """Return a stream's configuration: on disk, and when full the publisher learns of it."""
    return StreamConfig(
        name=stream.name,
        description=stream.summary,
        subjects=list(stream.subjects),
        storage=StorageType.FILE,
        retention=RetentionPolicy.LIMITS,
        discard=DiscardPolicy.NEW,
        max_bytes=stream.max_bytes,
        max_age=stream.max_age_s or 0,
        duplicate_window=stream.duplicate_window_s,
        num_replicas=replicas,
        allow_direct=True,
    )


async def ensure_streams(client: Client, streams: Iterable[Stream], replicas: int) -> None:
    """Create each stream or bring it to its configuration. Safe to repeat, and side by side.

    Raises:
        NotReadyError: JetStream doesn't answer.

    """
    jetstream = client.jetstream(timeout=_API_TIMEOUT_S)
    for stream in streams:
        wanted = config(stream, replicas)
        try:
            # Update first: to create one again, the server wants room for a second one.
            try:
                await jetstream.update_stream(wanted)
            except nats.js.errors.NotFoundError:
                await jetstream.add_stream(wanted)
        except (nats.errors.Error, TimeoutError) as error:
            raise NotReadyError(f"stream {stream.name}: {error}") from error


async def check_streams(client: Client, streams: Iterable[Stream]) -> None:
    """See that each stream exists and drops nothing that is old.

    Raises:
        NotReadyError: a stream is missing, or JetStream doesn't answer.
        UnsafeServerError: a stream would lose messages.

    """
    jetstream = client.jetstream(timeout=_API_TIMEOUT_S)
    for stream in streams:
        try:
            found = (await jetstream.stream_info(stream.name)).config
        except (nats.errors.Error, TimeoutError) as error:
            raise NotReadyError(f"stream {stream.name}: {type(error).__name__}") from error
        if found.discard != DiscardPolicy.NEW:
            raise UnsafeServerError(f"stream {stream.name}: discards {found.discard}, not new")
        if found.storage != StorageType.FILE:
            raise UnsafeServerError(f"stream {stream.name}: is kept in memory")


async def check_synced(settings: NatsSettings) -> None:
    """See that JetStream syncs to disk before it acknowledges (`sync_interval: always`).

    Raises:
        NotReadyError: the monitoring address doesn't answer.
        UnsafeServerError: a power cut would lose acknowledged records.

    """
    if settings.allow_unsynced_jetstream:
        return
    try:
        async with httpx.AsyncClient(timeout=_API_TIMEOUT_S) as http:
            response = await http.get(f"{settings.nats_monitor_url.rstrip('/')}/jsz")
            response.raise_for_status()
            answer = response.json()
    except (httpx.HTTPError, ValueError) as error:
        raise NotReadyError(f"nats monitoring: {type(error).__name__}") from error
    if not answer.get("config", {}).get("sync_always"):
        raise UnsafeServerError("nats: JetStream acknowledges before it syncs to disk")
