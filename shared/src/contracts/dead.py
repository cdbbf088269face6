"""Dead letters: messages that could not be handled, kept with the reason for a person."""

import hashlib

from contracts.contract import Event, Message, Stream

_MAX_DELIVERIES = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES"

DEAD_LETTERS = Stream(
    name="DEAD_LETTERS",
    # The server's own word on messages that it gave up is kept too, because it is said only once,
    # and the consumer's lag reads zero afterwards.
    subjects=("quota.v1.dead.*", f"{_MAX_DELIVERIES}.>"),
    owner="settlement",
    summary="What could not be handled, with the reason; nothing here expires by itself.",
    max_bytes=1024**3,
)


class DeadLetter(Message, frozen=True, kw_only=True):
    """One message that was taken off its stream without being handled."""

    stream: str
    stream_sequence: int
    subject: str
    consumer: str
    reason: str
    payload_base64: str
    """The message as it was, so that it can be replayed."""
    payload_cut: bool = False
    """The message was too large to be kept whole; `stream_sequence` has the rest while it may."""
    failed_at_us: int
    """Unix microseconds, the clock of the service that gave up."""

    @property
    def message_id(self) -> str:
        """The `Nats-Msg-Id`: the same however often a message is given up.

        With what is in it, since the numbers of a stream that was made anew begin again.
        """
        content = hashlib.sha256(self.payload_base64.encode()).hexdigest()[:16]
        return f"{self.consumer}:{self.stream}:{self.stream_sequence}:{content}"


DEAD_LETTERED = Event(
    subject="quota.v1.dead.{consumer}",
    message=DeadLetter,
    emitted_by=("settlement", "tier-cache"),
    stream=DEAD_LETTERS.name,
    summary="A message was given up; an operator lists and replays it.",
)


class MaxDeliveries(Message, frozen=True, kw_only=True):
    """The server's advisory: it delivered a message as often as allowed and gave it up."""

    stream: str
    consumer: str
    stream_seq: int
    deliveries: int


def max_deliveries_subject(stream: str, consumer: str) -> str:
    """Return the subject on which the server says so; `DEAD_LETTERS` keeps what it says."""
    return f"{_MAX_DELIVERIES}.{stream}.{consumer}"
