"""How an event is told to a webhook: signed as Standard Webhooks say, and again after failures.

https://www.standardwebhooks.com: the signature is the HMAC-SHA256 of `id.timestamp.body`.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from http import HTTPStatus

_MARK = "whsec_"
MIN_SECRET_BYTES = 24

_FIRST_PAUSE_S = 5
_LONGEST_PAUSE_S = 6 * 3_600
_GROWTH = 3
# After so many the longest pause is reached anyhow.
_MOST_STEPS = 20


class SecretFormatError(ValueError):
    """A webhook's secret is `whsec_` and base64 of at least 24 bytes."""


def read_secrets(text: str) -> tuple[bytes, ...]:
    """Return the keys of a secret; several, separated by spaces, while one replaces another.

    Raises:
        SecretFormatError: one is malformed or too short.

    """
    return tuple(_read_secret(part) for part in text.split())


def _read_secret(text: str) -> bytes:
    if not text.startswith(_MARK):
        raise SecretFormatError
    try:
        key = base64.b64decode(text.removeprefix(_MARK), validate=True)
    except (binascii.Error, ValueError) as error:
        raise SecretFormatError from error
    if len(key) < MIN_SECRET_BYTES:
        raise SecretFormatError
    return key


@dataclass(frozen=True, slots=True)
class Owed:
    """An event that is owed to the receiver. `attempt_no` counts from 1."""

    message_id: str
    kind: str
    payload: bytes
    created_at: datetime
    attempt_no: int


def body_of(owed: Owed) -> bytes:
    """Return the body, the same at each attempt: type, timestamp of the event, and its message."""
    instant = owed.created_at.astimezone(UTC).isoformat(timespec="microseconds")
    head = f'{{"type":"{owed.kind}","timestamp":"{instant.replace("+00:00", "Z")}","data":'
    return head.encode() + owed.payload + b"}"


def headers_of(
    message_id: str, body: bytes, now_s: int, secrets: Sequence[bytes]
) -> list[tuple[str, str]]:
    """Return the headers of an attempt at `now_s` (unix time); a signature for each secret."""
    signed = f"{message_id}.{now_s}.".encode() + body
    signatures = [
        "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        for key in secrets
    ]
    return [
        ("content-type", "application/json"),
        ("user-agent", "quotagate"),
        ("webhook-id", message_id),
        ("webhook-timestamp", str(now_s)),
        ("webhook-signature", " ".join(signatures)),
    ]


class Fate(StrEnum):
    """What an attempt came to."""

    DELIVERED = "delivered"
    RETRY = "retry"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the receiver answered: a status, or, where none arrived, why."""

    status: int | None = None
    error: str | None = None


def fate(answer: Answer, age: timedelta, patience: timedelta) -> Fate:
    """Return what an answer means for an event of this age.

    Any 2xx has it. 410 says that nobody will ever want it. All else may be otherwise next time,
    also a redirect, which is not followed: the address is the operator's to change.
    """
    if answer.status is not None and answer.status // 100 == HTTPStatus.OK // 100:
        return Fate.DELIVERED
    if answer.status == HTTPStatus.GONE or age >= patience:
        return Fate.GIVEN_UP
    return Fate.RETRY


def pause_s(attempt_no: int, jitter: float) -> float:
    """Return how long to wait after the attempt: 5 s, 15 s, 45 s, … up to 6 h.

    `jitter` from 0 to 1 makes it a quarter longer at most, so that retries don't come together.
    """
    grown = float(_FIRST_PAUSE_S * _GROWTH ** min(attempt_no - 1, _MOST_STEPS))
    return min(grown, _LONGEST_PAUSE_S) * (1 + jitter / 4)
