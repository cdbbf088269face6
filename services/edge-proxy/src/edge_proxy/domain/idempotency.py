"""What an `Idempotency-Key` means for a request, given what is remembered of the key."""

import hashlib
from dataclasses import dataclass
from types import MappingProxyType

from contracts.idempotency import IdempotencyEntry, KeptAnswer, Progress
from contracts.inference import InferenceRecord
from edge_proxy.domain.endpoints import Endpoint
from edge_proxy.domain.headers import RawHeaders
from edge_proxy.domain.problems import Problem, invalid_request

HEADER = b"idempotency-key"
REPLAY_HEADER = MappingProxyType({"x-quotagate-idempotent-replay": "true"})

_MAX_KEY_CHARS = 255
_RETRY_SOON = MappingProxyType({"retry-after": "1"})
_DONT_RETRY = MappingProxyType({"x-should-retry": "false"})

INVALID_KEY = invalid_request(
    "invalid_idempotency_key",
    f"`Idempotency-Key` must be one to {_MAX_KEY_CHARS} printable ASCII characters.",
)
STILL_RUNNING = Problem(
    409,
    "idempotency_error",
    "idempotency_key_in_use",
    "The first request with this idempotency key is still running.",
    headers=_RETRY_SOON,
)
NOT_REPLAYABLE = Problem(
    409,
    "idempotency_error",
    "idempotency_not_replayable",
    "The first request with this idempotency key has finished, and its answer isn't kept:"
    " it was a stream, or too large. To ask again, use another key.",
    headers=_DONT_RETRY,
)
OTHER_REQUEST = Problem(
    422,
    "idempotency_error",
    "idempotency_key_reused",
    "This idempotency key belongs to another request: its endpoint or its body was different.",
    headers=_DONT_RETRY,
)
UNAVAILABLE = Problem(
    503,
    "server_error",
    "service_unavailable",
    "Idempotency can't be promised at the moment; nothing was sent.",
    headers=_RETRY_SOON,
)


@dataclass(frozen=True, slots=True)
class Unused:
    """Nothing is remembered of the key."""


@dataclass(frozen=True, slots=True)
class GoesOn:
    """Earlier requests of this key failed, or their edge died; this one goes on from there."""

    inference_id: str
    first_attempt_no: int


@dataclass(frozen=True, slots=True)
class Replay:
    """The inference has finished: this is its answer."""

    answer: KeptAnswer
    unrecorded: InferenceRecord | None
    """To be handed over before the answer may be told."""


Meaning = Unused | GoesOn | Replay | Problem


def idempotency_key(headers: RawHeaders) -> str | Problem | None:
    """Return the key that a client sent; None: it sent none."""
    found = [value for name, value in headers if name == HEADER]
    if not found:
        return None
    key = found[0].decode("latin-1")
    valid = len(found) == 1 and key.isascii() and key.isprintable() and key.strip()
    return key if valid and len(key) <= _MAX_KEY_CHARS else INVALID_KEY


def entry_key(team_id: str, key: str) -> str:
    """Return where a team's key is remembered: whatever characters it has, one token of NATS."""
    return hashlib.sha256(f"{team_id}\n{key}".encode()).hexdigest()


def request_hash(endpoint: Endpoint, body: bytes) -> str:
    """Return by what two requests are known to be the same: the endpoint and every byte."""
    return hashlib.sha256(endpoint.path.encode() + b"\n" + body).hexdigest()


def meaning(
    entry: IdempotencyEntry | None, of_request: str, age_s: float, lease_s: float
) -> Meaning:
    """Judge a request by what is remembered of its key.

    `age_s` is how long ago the entry was written. A running one is written again before it is
    `lease_s` old; an older one belongs to an edge that is gone, and the attempt that it had begun
    is accounted for as unknown.
    """
    if entry is None:
        return Unused()
    if entry.request_hash != of_request:
        return OTHER_REQUEST
    if entry.progress is Progress.FINISHED:
        return Replay(entry.answer, entry.unrecorded) if entry.answer else NOT_REPLAYABLE
    if entry.progress is Progress.RUNNING and age_s <= lease_s:
        return STILL_RUNNING
    return GoesOn(entry.inference_id, entry.attempt_no + 1)
