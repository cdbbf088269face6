"""Make the streams of the catalogue, and check that an acknowledgement means durable."""

import ssl
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import httpx
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js.api import DiscardPolicy, PersistMode, RetentionPolicy, StorageType, StreamConfig

from contracts.contract import Stream
from kit.errors import NotReadyError
from kit.flaws import Flaw, refuse
from kit.health import CheckResult
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
    """See that each stream exists and loses nothing.

    Raises:
        NotReadyError: a stream is missing, or JetStream doesn't answer.
        UnsafeServerError: there is a dangerous one among the `stream_flaws`.

    """
    jetstream = client.jetstream(timeout=_API_TIMEOUT_S)
    for stream in streams:
        try:
            found = (await jetstream.stream_info(stream.name)).config
        except (nats.errors.Error, TimeoutError) as error:
            raise NotReadyError(f"stream {stream.name}: {type(error).__name__}") from error
        refuse(stream_flaws(found, stream))


async def streams_problem(client: Client, streams: Iterable[Stream]) -> CheckResult:
    """Return what keeps a stream from being used, None where nothing does: a check of readiness.

    One that was deleted meanwhile loses what it held, and whoever reads or publishes works no more.
    """
    try:
        await check_streams(client, streams)
    except NotReadyError as error:
        return str(error)
    return None


def stream_flaws(found: StreamConfig, stream: Stream) -> list[Flaw]:
    """Return how a stream's configuration breaks what its contract says."""
    missing = sorted(set(stream.subjects) - set(found.subjects or ()))
    duplicates_s = found.duplicate_window
    problems = [
        (found.discard != DiscardPolicy.NEW, "drops old messages when it is full", True),
        (found.storage != StorageType.FILE, "is kept in memory", True),
        (found.retention != RetentionPolicy.LIMITS, "drops what was read", True),
        (_shorter(found.max_age, stream.max_age_s), "drops messages too early", True),
        ((found.max_msgs_per_subject or -1) > 0, "drops old messages of a subject", True),
        (found.no_ack, "doesn't acknowledge", True),
        (
            found.persist_mode not in {None, PersistMode.DEFAULT},
            "acknowledges before it has written to disk",
            True,
        ),
        (bool(missing), f"doesn't take {', '.join(missing)}", True),
        (found.sealed, "is sealed: it takes nothing", True),
        (
            duplicates_s < stream.duplicate_window_s,
            f"remembers message ids for {duplicates_s:g} s, not {stream.duplicate_window_s} s",
            False,
        ),
    ]
    return [
        Flaw(
            what=f"stream {stream.name} {what}",
            why="What was acknowledged could be lost."
            if dangerous
            else "Repeated messages are stored again; only the database's keys keep them apart.",
            mend="quotagate migrate brings the streams to their configuration; one that is in"
            " memory must be made anew.",
            dangerous=dangerous,
        )
        for wrong, what, dangerous in problems
        if wrong
    ]


def _shorter(found_s: float | None, wanted_s: int | None) -> bool:
    """Return whether messages are dropped earlier than wanted; 0 and None mean never."""
    return bool(found_s) and (wanted_s is None or (found_s or 0) < wanted_s)


async def check_synced(settings: NatsSettings) -> None:
    """See that JetStream syncs to disk before it acknowledges (`sync_interval: always`).

    Raises:
        NotReadyError: the monitoring address doesn't answer.
        UnsafeServerError: a power cut would lose acknowledged records.

    """
    if not settings.allow_unsynced_jetstream:
        refuse(sync_flaws(await monitoring(settings, "jsz")))


def sync_flaws(jsz: Mapping[str, Any]) -> list[Flaw]:
    """Return what is wrong with how JetStream syncs, by the monitoring page `/jsz`."""
    if jsz.get("config", {}).get("sync_always"):
        return []
    return [
        Flaw(
            what="nats: JetStream acknowledges before it syncs to disk",
            why="A power cut loses what was acknowledged: successes without a charge.",
            mend="jetstream { sync_interval: always } in the server's configuration, and restart.",
        )
    ]


@cache
def _tls() -> ssl.SSLContext:
    """Return the one context of this process.

    A client that is given none makes its own with all certificates of the system in it: most of a
    megabyte each time that a server is asked, which only the search for cycles gives back.
    """
    return httpx.create_ssl_context()


async def monitoring(settings: NatsSettings, page: str) -> dict[str, Any]:
    """Return a page of the NATS server's monitoring address, such as `jsz` or `varz`.

    Raises:
        NotReadyError: it doesn't answer.

    """
    try:
        async with httpx.AsyncClient(timeout=_API_TIMEOUT_S, verify=_tls()) as http:
            response = await http.get(f"{settings.nats_monitor_url.rstrip('/')}/{page}")
            response.raise_for_status()
            answer: dict[str, Any] = response.json()
    except (httpx.HTTPError, ValueError) as error:
        raise NotReadyError(f"nats monitoring: {type(error).__name__}") from error
    return answer
