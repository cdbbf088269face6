"""What goes to a provider and what its answer says about itself, whatever the API."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from edge_proxy.domain.usage import NO_USAGE, UsageReading

_MAX_MODEL_CHARS = 256

_text = msgspec.json.Decoder(str)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A body as the provider gets it."""

    body: bytes
    hides_usage: bool = False
    """The client didn't ask for the stream's usage, so it doesn't see the event that tells it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a whole answer says about itself."""

    usage: UsageReading
    model_served: str | None
    stored_id: str | None = None
    """By which the provider gives the answer out again; None: it doesn't."""


NO_ANSWER = Answer(usage=NO_USAGE, model_served=None)


def model_served(members: Mapping[str, msgspec.Raw]) -> str | None:
    """Return the model that an answer names, None where it names none that could be one."""
    try:
        name = _text.decode(members.get("model", b"null"))
    except msgspec.DecodeError:
        return None
    return name[:_MAX_MODEL_CHARS] or None
