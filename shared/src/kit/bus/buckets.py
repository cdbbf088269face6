"""Key-value buckets: make them, check them, and change a key only as it was read.

Their layout is that of NATS' own key-value stores, so its tools can look into them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js.api import DiscardPolicy, Header, StorageType, StreamConfig

from contracts.contract import Bucket, decode, encode
from contracts.errors import ErrorCode
from kit.bus.errors import (
    ConflictError,
    DisconnectedError,
    FailedError,
    NoReplyError,
    NoResponderError,
    StreamRefusedError,
)
from kit.errors import NotReadyError
from kit.flaws import Flaw, refuse

ValueT = TypeVar("ValueT", bound=msgspec.Struct)

_API_TIMEOUT_S = 5.0
_WRITTEN_MEANWHILE = frozenset({10071, 10164})
_OPERATION = "KV-Operation"
_REMOVAL = "PURGE"
_REMOVAL_LIFE_S = 1
_US_PER_S = 1_000_000
_NOT_SENT = (
    nats.errors.OutboundBufferLimitError,
    nats.errors.ConnectionClosedError,
    nats.errors.ConnectionDrainingError,
    nats.errors.ConnectionReconnectingError,
)


def config(bucket: Bucket[Any], replicas: int) -> StreamConfig:
    """Return the configuration of a bucket's stream: when full the writer learns of it."""
    return StreamConfig(
        name=bucket.stream,
        description=bucket.summary,
        subjects=[f"$KV.{bucket.name}.>"],
        storage=StorageType.FILE,
        discard=DiscardPolicy.NEW,
        max_msgs_per_subject=1,
        max_bytes=bucket.max_bytes,
        max_age=bucket.max_age_s,
        max_msg_size=bucket.max_value_bytes,
        num_replicas=replicas,
        allow_direct=True,
        allow_rollup_hdrs=True,
        allow_msg_ttl=True,
        deny_delete=True,
    )


async def ensure_buckets(client: Client, buckets: Iterable[Bucket[Any]], replicas: int) -> None:
    """Create each bucket or bring it to its configuration. Safe to repeat, and side by side.

    Raises:
        NotReadyError: JetStream doesn't answer, or is older than values' lives (2.11).

    """
    jetstream = client.jetstream(timeout=_API_TIMEOUT_S)
    for bucket in buckets:
        wanted = config(bucket, replicas)
        try:
            try:
                await jetstream.update_stream(wanted)
            except nats.js.errors.NotFoundError:
                await jetstream.add_stream(wanted)
        except (nats.errors.Error, TimeoutError) as error:
            raise NotReadyError(f"bucket {bucket.name}: {error}") from error


async def check_buckets(client: Client, buckets: Iterable[Bucket[Any]]) -> None:
    """See that each bucket exists, keeps its values on disk, and drops none to make room.

    Raises:
        NotReadyError: one doesn't exist, or JetStream doesn't answer.
        UnsafeServerError: there is a dangerous one among the `bucket_flaws`.

    """
    jetstream = client.jetstream(timeout=_API_TIMEOUT_S)
    for bucket in buckets:
        try:
            found = (await jetstream.stream_info(bucket.stream)).config
        except (nats.errors.Error, TimeoutError) as error:
            raise NotReadyError(f"bucket {bucket.name}: {type(error).__name__}") from error
        refuse(bucket_flaws(found, bucket))


def bucket_flaws(found: StreamConfig, bucket: Bucket[Any]) -> list[Flaw]:
    """Return how the stream of a bucket breaks what its contract says."""
    problems = (
        (found.storage != StorageType.FILE, "is kept in memory"),
        (found.discard != DiscardPolicy.NEW, "drops old values when it is full"),
        (not found.allow_msg_ttl, "gives no value a life of its own"),
        (found.sealed, "is sealed: it takes nothing"),
    )
    return [
        Flaw(
            what=f"bucket {bucket.name} {what}",
            why=f"It would forget: {bucket.summary[0].lower()}{bucket.summary[1:]}",
            mend="quotagate migrate brings it to its form; one that is in memory must be made"
            " anew.",
        )
        for wrong, what in problems
        if wrong
    ]


@dataclass(frozen=True, slots=True)
class Kept(Generic[ValueT]):
    """A key as the server has it."""

    value: ValueT | None
    """None: there is none."""
    revision: int
    """What the next write must name; 0 where nothing was ever there."""
    written_at_us: int
    """Unix microseconds of the server's clock."""


class BucketStore(Generic[ValueT]):
    """One bucket. Every method raises BusError where the server doesn't do what it is asked.

    A write names the revision that it replaces and is refused with ConflictError where the key has
    another: so of several that write at once, one wins. A write whose outcome is unknown may be
    repeated: had it been done, the repetition is refused.
    """

    def __init__(self, client: Client, bucket: Bucket[ValueT], timeout_s: float) -> None:
        self._client = client
        self._bucket = bucket
        self._timeout_s = timeout_s
        self._jetstream = client.jetstream(timeout=timeout_s)

    async def read(self, key: str) -> Kept[ValueT]:
        """Return a key's value, which a cluster's replica may tell a little late."""
        subject = self._bucket.subject_for(key)
        try:
            found = await self._jetstream.get_msg(self._bucket.stream, subject=subject, direct=True)
        except nats.js.errors.NotFoundError:
            return Kept(None, 0, 0)
        except (TimeoutError, nats.errors.Error) as error:
            raise _meaning_of(error) from error
        if found.seq is None or found.time is None:
            raise FailedError(ErrorCode.INTERNAL)
        written_at_us = _us(found.time)
        if _OPERATION in (found.headers or {}):
            return Kept(None, found.seq, written_at_us)
        try:
            value = decode(found.data or b"", self._bucket.value)
        except msgspec.MsgspecError as error:
            raise FailedError(ErrorCode.INTERNAL) from error
        return Kept(value, found.seq, written_at_us)

    async def write(self, key: str, value: ValueT, revision: int, life_s: int) -> int:
        """Replace what was read under `revision`, for `life_s`; return the new revision."""
        return await self._publish(key, encode(value), revision, life_s, {})

    async def remove(self, key: str, revision: int) -> None:
        """Remove what was read under `revision`."""
        headers = {_OPERATION: _REMOVAL, Header.ROLLUP.value: "sub"}
        await self._publish(key, b"", revision, _REMOVAL_LIFE_S, headers)

    async def now_us(self) -> int:
        """Return the server's clock, unix microseconds: what `written_at_us` is compared with."""
        try:
            reply = await self._client.request(
                f"$JS.API.STREAM.INFO.{self._bucket.stream}", b"", timeout=self._timeout_s
            )
            return _us(msgspec.json.decode(reply.data, type=_Info).ts)
        except (TimeoutError, nats.errors.Error) as error:
            raise _meaning_of(error) from error
        except msgspec.MsgspecError as error:
            raise FailedError(ErrorCode.INTERNAL) from error

    async def _publish(
        self, key: str, data: bytes, revision: int, life_s: int, headers: dict[str, str]
    ) -> int:
        expected = {Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(revision)}
        try:
            ack = await self._jetstream.publish(
                self._bucket.subject_for(key),
                data,
                stream=self._bucket.stream,
                headers={**expected, **headers},
                msg_ttl=life_s,
            )
        except (TimeoutError, nats.errors.Error) as error:
            raise _meaning_of(error) from error
        return ack.seq


class _Info(msgspec.Struct):
    ts: datetime


def _us(time: datetime) -> int:
    # Through whole seconds: a float's microseconds would be off by one.
    return int(time.replace(microsecond=0).timestamp()) * _US_PER_S + time.microsecond


def _meaning_of(
    error: Exception,
) -> ConflictError | DisconnectedError | NoResponderError | StreamRefusedError | NoReplyError:
    match error:
        case nats.js.errors.NoStreamResponseError() | nats.errors.NoRespondersError():
            return NoResponderError()
        case nats.js.errors.APIError(err_code=code) if code in _WRITTEN_MEANWHILE:
            return ConflictError()
        case nats.js.errors.APIError():
            return StreamRefusedError(f"bucket refused: {error.description}")
        case _ if isinstance(error, _NOT_SENT):
            return DisconnectedError()
        case _:
            return NoReplyError()
