"""Examines NATS: that an acknowledgement means durable, and that nothing old is dropped."""

from datetime import datetime
from typing import Any

import nats.js.errors
from nats.aio.client import Client
from nats.js.api import StreamInfo

from contracts.catalogue import BUCKETS, STREAMS
from kit.bus.buckets import bucket_flaws
from kit.bus.streams import monitoring, stream_flaws, sync_flaws
from kit.errors import NotReadyError
from kit.flaws import Flaw
from quotagate import stores
from quotagate.doctor.clocks import Stopwatch
from quotagate.doctor.examined import Examined, version_flaws
from quotagate.stores import CannotTellError, StoreSettings

_LEAST_VERSION = (2, 12)
_LEAST_PAYLOAD_BYTES = 1_000_000
_NEARLY_FULL = 0.8
_CLUSTER_REPLICAS = 3
_API_TIMEOUT_S = 10.0


async def examine_messaging(settings: StoreSettings) -> Examined:
    """Examine the server, its JetStream and the streams.

    Raises:
        CannotTellError: NATS or its monitoring address doesn't answer.

    """
    try:
        watch = Stopwatch()
        varz = await monitoring(settings, "varz")
        clock = watch.reading("nats", _time_us(varz["now"]))
        jsz = await monitoring(settings, "jsz")
    except (NotReadyError, KeyError, ValueError) as error:
        raise CannotTellError(str(error)) from error
    flaws = [*_server_flaws(varz), *sync_flaws(jsz)]
    clustered = bool(varz.get("cluster"))
    async with stores.bus(settings) as client:
        for stream in STREAMS:
            info = await _info(client, stream.name)
            flaws += (
                [*stream_flaws(info.config, stream), *_state_flaws(info, clustered=clustered)]
                if info
                else [_missing(f"stream {stream.name}", stream.summary)]
            )
        for bucket in BUCKETS:
            info = await _info(client, bucket.stream)
            flaws += (
                [*bucket_flaws(info.config, bucket), *_state_flaws(info, clustered=clustered)]
                if info
                else [_missing(f"bucket {bucket.name}", bucket.summary)]
            )
    return Examined(f"nats {varz.get('version')}", clock, flaws)


def _time_us(text: str) -> int:
    # The server writes nanoseconds, which Python's parser takes no more than six digits of.
    head, _, fraction = text.rstrip("Z").partition(".")
    instant = datetime.fromisoformat(f"{head}.{fraction[:6]:0<6}+00:00")
    return round(instant.timestamp() * 1_000_000)


def _server_flaws(varz: dict[str, Any]) -> list[Flaw]:
    flaws = version_flaws(
        "nats",
        str(varz.get("version", "")),
        _LEAST_VERSION,
        "The streams' configuration and the services' protocol are tested from there on.",
    )
    if varz.get("max_payload", 0) < _LEAST_PAYLOAD_BYTES:
        flaws.append(
            Flaw(
                what=f"nats: max_payload is {varz.get('max_payload')} bytes",
                why="A record or a dead letter that is larger can't be handed off.",
                mend="max_payload: 1MB in the server's configuration.",
                dangerous=False,
            )
        )
    if not varz.get("auth_required"):
        flaws.append(
            Flaw(
                what="nats: anyone who reaches the port may publish",
                why="A record that no edge wrote would be charged.",
                mend="Give each service its user; see infra/config/nats.conf.",
                dangerous=False,
            )
        )
    return flaws


async def _info(client: Client, stream: str) -> StreamInfo | None:
    try:
        return await client.jetstream(timeout=_API_TIMEOUT_S).stream_info(stream)
    except nats.js.errors.NotFoundError:
        return None


def _missing(name: str, summary: str) -> Flaw:
    return Flaw(
        what=f"{name} isn't there",
        why=f"It holds: {summary[0].lower()}{summary[1:]}",
        mend="quotagate migrate makes the streams and buckets.",
    )


def _state_flaws(info: StreamInfo, *, clustered: bool) -> list[Flaw]:
    name, most = info.config.name, info.config.max_bytes or 0
    flaws = []
    if most > 0 and info.state.bytes > most * _NEARLY_FULL:
        flaws.append(
            Flaw(
                what=f"stream {name} is {info.state.bytes / most:.0%} full",
                why="When it is full it refuses what comes: new requests are refused with 503.",
                mend="See why settlement doesn't trim it (docs/operations.md), or give it room:"
                " QUOTAGATE_RECORD_STREAM_MAX_BYTES=... quotagate migrate",
                dangerous=False,
            )
        )
    if clustered and (info.config.num_replicas or 1) < _CLUSTER_REPLICAS:
        flaws.append(
            Flaw(
                what=f"stream {name} has {info.config.num_replicas} replica in a cluster",
                why="The disk of one server holds the only copy of unsettled records.",
                mend="QUOTAGATE_STREAM_REPLICAS=3 quotagate migrate",
                dangerous=False,
            )
        )
    return flaws
