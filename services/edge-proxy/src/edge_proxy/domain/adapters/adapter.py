"""What the gateway must know of a provider's API to meter it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from edge_proxy.domain.asked import Asked
from edge_proxy.domain.usage import NO_USAGE, UsageReading


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A body as the provider gets it."""

    body: bytes
    hides_usage: bool
    """The client didn't ask for the stream's usage, so it doesn't see the event that tells it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a whole answer says about itself."""

    usage: UsageReading
    model_served: str | None


NO_ANSWER = Answer(usage=NO_USAGE, model_served=None)


class StreamScanner(Protocol):
    """Reads along while a stream passes, and holds back what would tell of success.

    Feed every chunk; pass on at once what comes back. `held` leaves only once the record of the
    attempt is durable.
    """

    @property
    def held(self) -> bytes:
        """What has been held back so far, in order."""

    @property
    def complete(self) -> bool:
        """The provider said in its own way that the stream is over; only a last event ends it."""

    @property
    def failed(self) -> bool:
        """The provider reported an error in the stream."""

    @property
    def ended(self) -> bool:
        """The last event has arrived: nothing of worth follows."""

    @property
    def between_events(self) -> bool:
        """Whether a comment of ours may be put here."""

    @property
    def answer(self) -> Answer:
        """What the stream has said about itself so far."""

    def feed(self, chunk: bytes) -> bytes:
        """Return what the client may have now."""

    def end(self) -> bytes:
        """Judge a last event that lacks its blank line; return what the client may have of it."""


class Adapter(Protocol):
    """One provider API."""

    @property
    def name(self) -> str:
        """The name in the routes file, and the label of the metrics."""

    @property
    def paths(self) -> Mapping[str, str]:
        """Where the provider serves an endpoint, below its base URL; absent: it doesn't."""

    def credentials(self, api_key: str) -> tuple[tuple[str, str], ...]:
        """Return the headers that authenticate the gateway."""

    def outgoing(self, asked: Asked, model: str, *, stream_usage: bool) -> Outgoing:
        """Return the body to send: the client's own bytes but for what must differ.

        `model` is the deployment's name of the model. `stream_usage` says whether the provider
        knows the option that makes a stream tell its usage; one that doesn't never gets it.
        """

    def read_answer(self, body: bytes) -> Answer | None:
        """Read a whole answer; None: it isn't one."""

    def scanner(self, outgoing: Outgoing, max_event_bytes: int) -> StreamScanner:
        """Return a scanner for the stream that answers this body."""
