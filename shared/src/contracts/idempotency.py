"""What the edges remember of requests that carried an `Idempotency-Key`."""

from enum import StrEnum
from typing import Annotated

import msgspec

from contracts.contract import Bucket, Message
from contracts.ids import AttemptNo
from contracts.inference import InferenceRecord


class Progress(StrEnum):
    """How far the inference of a key has come."""

    RUNNING = "running"
    """Somebody holds it, and writes the entry again before it is old."""
    OPEN = "open"
    """Every attempt so far has failed: the next request of the same key and body goes on."""
    FINISHED = "finished"
    """An attempt has succeeded: no request of this key calls a provider any more."""


class KeptAnswer(Message, frozen=True, kw_only=True):
    """A whole answer as its client got it, without the state of the limits."""

    status: int
    headers: dict[str, str]
    body: bytes


class IdempotencyEntry(Message, frozen=True, kw_only=True):
    """One key of one team."""

    request_hash: Annotated[str, msgspec.Meta(max_length=64)]
    """Of the endpoint and the body: another request must not get this one's answer."""
    inference_id: str
    attempt_no: AttemptNo
    """The last attempt that may have begun."""
    progress: Progress
    holder: str
    """Who wrote it last, one id for each request."""
    answer: KeptAnswer | None = None
    """None where it isn't finished, was a stream, or was too large to keep."""
    unrecorded: InferenceRecord | None = None
    """The record of the attempt that succeeded, where the stream hadn't acknowledged it: who
    replays the answer hands it over first."""


IDEMPOTENCY = Bucket(
    name="IDEMPOTENCY",
    value=IdempotencyEntry,
    user="edge-proxy",
    summary="Requests with an idempotency key, and the answers of those that have finished.",
    max_age_s=24 * 3600,
    max_bytes=2 * 1024**3,
    max_value_bytes=1024**2,
)
