"""What the gateway must know of a provider's API to meter it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from edge_proxy.domain.adapters.answer import Answer, Outgoing, model_served
from edge_proxy.domain.adapters.scanner import StreamReader, StreamScanner
from edge_proxy.domain.asked import Asked
from edge_proxy.domain.usage import NO_USAGE, UsageReading

_NULL = b"null"

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """In what one provider differs from the others that speak its API."""

    stream_usage: bool = True
    """It knows the option that makes a stream tell its usage; one that doesn't never gets it."""
    reasoning_outside_output: bool = False
    """The output it reports doesn't include the reasoning, whatever its total says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One endpoint, as one provider API serves it."""

    path: str
    """Below the provider's base URL."""
    outgoing: Callable[[Asked, str], Outgoing]
    """Returns the body to send: the client's own bytes but for what must differ.

    The second argument is the deployment's name of the model.
    """
    read_usage: Callable[[bytes], UsageReading]
    """Reads a `usage` member, JSON of any kind but null."""
    new_reader: Callable[[Outgoing], StreamReader]
    """Returns a reader for the stream that answers this body."""
    stored_id: Callable[[Mapping[str, msgspec.Raw]], str | None] = lambda _members: None
    """Returns the id by which the provider gives a whole answer out again, if it does."""

    def read_answer(self, body: bytes) -> Answer | None:
        """Read a whole answer; None: not a JSON object."""
        try:
            members = _members.decode(body)
        except (msgspec.DecodeError, RecursionError):
            return None
        usage = bytes(members.get("usage", _NULL))
        return Answer(
            usage=NO_USAGE if usage == _NULL else self.read_usage(usage),
            model_served=model_served(members),
            stored_id=self.stored_id(members),
        )

    def scanner(self, outgoing: Outgoing, max_event_bytes: int) -> StreamScanner:
        """Return a scanner for the stream that answers this body."""
        return StreamScanner(self.new_reader(outgoing), max_event_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One provider API."""

    name: str
    """The name in the routes file, and the label of the metrics."""
    apis: Mapping[str, Api]
    """By the path of the endpoint; absent: the provider API has nothing like it."""
    credentials: Callable[[str], tuple[tuple[str, str], ...]]
    """Returns the headers that authenticate the gateway with its API key."""
