"""A stream, read along while it passes. What its events mean, a reader of its API says."""

import re
from enum import Enum, auto
from typing import Protocol

from edge_proxy.domain.adapters.answer import Answer
from edge_proxy.domain.sse import EventBuffer, data_of, split


class Fate(Enum):
    """What becomes of an event."""

    PASS = auto()
    """The client may have it, and what was held before it: the stream goes on."""
    FOLLOW = auto()
    """It changes nothing: it is held where something is held, and passes where nothing is."""
    HOLD = auto()
    """It tells of success, so it waits until the record of the attempt is durable."""
    LAST = auto()
    """It is held, and nothing of worth follows."""
    HIDE = auto()
    """The gateway asked for it, the client didn't."""


class StreamReader(Protocol):
    """Knows the events of one API, and remembers what they say."""

    @property
    def worth_reading(self) -> tuple[re.Pattern[bytes], ...]:
        """What an event contains if it matters, one of these. Others are never decoded.

        A pattern with an unescaped quote can't be met by the text of an answer: within a JSON
        string, quotes are escaped. One that begins with a literal is found many times faster than
        one that begins with a choice.
        """

    @property
    def complete(self) -> bool:
        """The provider said in its own way that the answer is whole."""

    @property
    def failed(self) -> bool:
        """The provider reported an error in the stream."""

    @property
    def answer(self) -> Answer:
        """What the stream has said about itself so far."""

    def read(self, data: bytes) -> Fate | None:
        """Read an event's data; None: it isn't one of this API's."""

    def trim(self, events: bytes) -> bytes:
        """Return whole events without what only the gateway asked for, found without decoding."""


class StreamScanner:
    """Reads along while a stream passes, and holds back what would tell of success.

    Feed every chunk; pass on at once what comes back. `held` leaves only once the record of the
    attempt is durable. Which bytes come out doesn't depend on how they were cut.
    """

    def __init__(self, reader: StreamReader, max_event_bytes: int) -> None:
        self._reader = reader
        self._worth_reading = reader.worth_reading
        self._events = EventBuffer(max_event_bytes)
        self._max_held_bytes = 2 * max_event_bytes
        self._held: list[bytes] = []
        self._has_read = False
        """The first event is always read: it names the model."""
        self.ended = False
        """The last event has arrived: nothing of worth follows."""

    @property
    def held(self) -> bytes:
        """What has been held back so far, in order."""
        return b"".join(self._held)

    @property
    def complete(self) -> bool:
        """The provider said in its own way that the answer is whole; only a last event ends it."""
        return self._reader.complete

    @property
    def failed(self) -> bool:
        """The provider reported an error in the stream."""
        return self._reader.failed

    @property
    def between_events(self) -> bool:
        """Whether a comment of ours may be put here."""
        return self._events.between_events

    @property
    def answer(self) -> Answer:
        """What the stream has said about itself so far."""
        return self._reader.answer

    def feed(self, chunk: bytes) -> bytes:
        """Return what the client may have now."""
        unsearched, events = self._events.feed(chunk)
        events = self._reader.trim(events)
        if self._has_read and not self._held and not self._matters(events):
            return unsearched + events if unsearched else events
        return unsearched + b"".join([self._pass(event) for event in split(events)])

    def end(self) -> bytes:
        """Judge a last event that lacks its blank line; return what the client may have of it."""
        rest = self._events.rest()
        return self._pass(rest) if rest else b""

    def _matters(self, data: bytes) -> bool:
        for pattern in self._worth_reading:  # noqa: SIM110 # any() costs more than the search
            if pattern.search(data):
                return True
        return False

    def _pass(self, event: bytes) -> bytes:
        """Return what the client may have now that this event has come."""
        fate = self._fate_of(event)
        if fate is Fate.HIDE:
            return b""
        if fate is Fate.LAST:
            self.ended = True
        if fate in (Fate.HOLD, Fate.LAST) or (fate is Fate.FOLLOW and self._held):
            return self._hold(event)
        return event if fate is Fate.FOLLOW else self._release(event)

    def _fate_of(self, event: bytes) -> Fate:
        data = data_of(event)
        if data is None or self.ended:
            return Fate.FOLLOW
        if self._has_read and not self._matters(data):
            return Fate.PASS
        fate = self._reader.read(data)
        if fate is None:
            return Fate.PASS
        self._has_read = True
        return fate

    def _hold(self, event: bytes) -> bytes:
        self._held.append(event)
        if sum(map(len, self._held)) <= self._max_held_bytes:
            return b""
        return self._release(b"")

    def _release(self, event: bytes) -> bytes:
        if not self._held:
            return event
        released = b"".join([*self._held, event])
        self._held.clear()
        return released
