"""What a contract is: a subject, the messages on it, who serves or emits it, one sentence."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

MessageT = TypeVar("MessageT", bound=msgspec.Struct)
RequestT = TypeVar("RequestT", bound=msgspec.Struct)
ReplyT = TypeVar("ReplyT", bound=msgspec.Struct)


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all messages: frozen, JSON, unknown fields ignored, new fields have defaults."""


TRACEPARENT = "traceparent"
"""Header of a message that belongs to a recorded trace: the span that sent it, as W3C Trace Context
writes it. It may be missing or wrong, and decides nothing but what a trace shows."""


class SubjectTokenError(ValueError):
    """A subject's variable token must be one non-empty NATS token."""


def _check_token(token: str) -> str:
    if not token or any(char in token for char in ".*> \t\r\n"):
        raise SubjectTokenError(f"not a NATS subject token: {token!r}")
    return token


@dataclass(frozen=True, slots=True)
class RequestReply(Generic[RequestT, ReplyT]):
    """A question one service asks and another answers, within the caller's deadline.

    Replicas of `served_by` share the subject in a queue group named after the service. A wrong
    message gets an error reply with a code of :class:`contracts.errors.ErrorCode`, never silence.
    """

    subject: str
    request: type[RequestT]
    reply: type[ReplyT]
    served_by: str
    summary: str

    @property
    def endpoint(self) -> str:
        """The endpoint's name in the NATS services protocol, which allows no dots."""
        return self.subject.removeprefix("quota.v1.").replace(".", "-")


@dataclass(frozen=True, slots=True)
class Event(Generic[MessageT]):
    """A fact published to a stream, with an id by which the stream drops duplicates.

    `subject` ends in `.{token}` where the fact concerns one team, tier or key.
    """

    subject: str
    message: type[MessageT]
    emitted_by: tuple[str, ...]
    stream: str
    summary: str
    is_traced: bool = False
    """Whether it may carry `traceparent`; a request always may."""

    @property
    def parameter(self) -> str | None:
        """The name of the subject's variable token; None where it has none."""
        head, _, tail = self.subject.rpartition(".")
        return tail[1:-1] if head and tail.startswith("{") else None

    @property
    def wildcard(self) -> str:
        """The subject to subscribe to for all of them."""
        if self.parameter is None:
            return self.subject
        return self.subject.rpartition(".")[0] + ".*"

    def subject_for(self, token: str | None = None) -> str:
        """Return the subject of one fact; `token` is the team, tier or key id it concerns."""
        if self.parameter is None:
            return self.subject
        return f"{self.subject.rpartition('.')[0]}.{_check_token(token or '')}"


@dataclass(frozen=True, slots=True)
class Stream:
    """A JetStream stream: file storage, limits retention; full means the publisher learns of it.

    `duplicate_window_s` is how long the server remembers message ids. `max_age_s` None keeps
    messages until somebody trims them.
    """

    name: str
    subjects: tuple[str, ...]
    owner: str
    summary: str
    duplicate_window_s: int = 600
    max_bytes: int = 8 * 1024**3
    max_age_s: int | None = None


@dataclass(frozen=True, slots=True)
class Bucket(Generic[MessageT]):
    """A JetStream key-value bucket: the latest value of each key, on disk; full means refused.

    `user` alone reads and writes it. `max_age_s` is the longest that a value lives by the server's
    clock; a writer may give it less.
    """

    name: str
    value: type[MessageT]
    user: str
    summary: str
    max_age_s: int
    max_bytes: int
    max_value_bytes: int

    @property
    def stream(self) -> str:
        """The stream that holds it."""
        return f"KV_{self.name}"

    @property
    def wildcard(self) -> str:
        """The subject of all its keys."""
        return f"$KV.{self.name}.*"

    def subject_for(self, key: str) -> str:
        """Return the subject of a key."""
        return f"$KV.{self.name}.{_check_token(key)}"


_ENCODER = msgspec.json.Encoder(decimal_format="string")


def encode(message: msgspec.Struct) -> bytes:
    """Return the message as JSON bytes."""
    return _ENCODER.encode(message)


_DECODERS: dict[type[Any], msgspec.json.Decoder[Any]] = {}


def decode(data: bytes, message: type[MessageT]) -> MessageT:
    """Read a message from JSON bytes.

    Raises:
        msgspec.DecodeError: not JSON; its subclass ValidationError: not this message.

    """
    decoder = _DECODERS.get(message)
    if decoder is None:
        decoder = _DECODERS[message] = msgspec.json.Decoder(message)
    decoded: MessageT = decoder.decode(data)
    return decoded
