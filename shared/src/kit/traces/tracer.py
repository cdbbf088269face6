"""What a service may ask of a tracer.

A span holds names, numbers and ids that somebody of ours gave. Never a key, a prompt, a completion,
the value of a client's or a provider's header, or the text of an error, which may quote one of
them: of an error the type is told.
"""

import importlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, cast

from kit.settings import TracesSettings

Attributes = Mapping[str, str | int | float | bool]


class Kind(Enum):
    """Which side of a conversation a span is."""

    SERVER = "server"
    CLIENT = "client"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    INTERNAL = "internal"


class Span(Protocol):
    """Something that is being done, and recorded."""

    def note(self, attributes: Attributes) -> None:
        """Say more about it."""

    def rename(self, name: str) -> None:
        """Call it what it turned out to be."""

    def fail(self, error_type: str) -> None:
        """Say that it went wrong; the type is one of a few words, never a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A span that is told when it is over. Times are unix microseconds of whoever observed it."""

    name: str
    kind: Kind
    started_us: int
    ended_us: int
    attributes: Attributes = field(default_factory=dict)
    error_type: str | None = None
    events: Mapping[str, int] = field(default_factory=dict)
    """What happened meanwhile, and when."""


class Tracer(Protocol):
    """Makes spans. The span under way belongs to the task, and to the tasks that it makes."""

    def current(self) -> str | None:
        """Return the `traceparent` of the span under way; None: nothing is being recorded."""

    def begin(
        self, name: str, kind: Kind, parent: str | None, attributes: Attributes
    ) -> AbstractContextManager[Span | None]:
        """Begin what a request of somebody else's sets off, until the block ends.

        `parent` is the `traceparent` that came with it. Where that is missing or malformed the
        configured share of requests is recorded. None: this one isn't.
        """

    def child(
        self, name: str, kind: Kind, attributes: Attributes
    ) -> AbstractContextManager[Span | None]:
        """Begin a part of the span under way; None: nothing is being recorded."""

    def tell(self, past: Past, parent: str | None = None) -> None:
        """Record what is over already, as a part of `parent`, else of the span under way.

        Nothing is recorded where neither is.
        """

    async def close(self) -> None:
        """Send what is left, within two seconds; nothing is recorded afterwards."""


def opened(service: str, settings: TracesSettings) -> Tracer | None:
    """Return the process's tracer; None: traces are off, and the library isn't even imported."""
    if not settings.traces_endpoint:
        return None
    sdk = importlib.import_module("kit.traces.sdk")
    return cast("Tracer", sdk.SdkTracer(service, settings.traces_endpoint, settings.traces_sample))
