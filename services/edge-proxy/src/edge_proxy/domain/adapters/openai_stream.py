"""A stream of OpenAI's chat completions, read along while it passes."""

import re
from collections.abc import Mapping

import msgspec

from edge_proxy.domain.adapters.adapter import Answer
from edge_proxy.domain.adapters.openai_usage import model_served, read_usage
from edge_proxy.domain.sse import EventBuffer, data_of, split
from edge_proxy.domain.usage import NO_USAGE

# What an event must contain to be worth decoding. Text can't contain it: within a JSON string the
# quotes are escaped. Most providers send `"usage":null` and `"finish_reason":null` on every chunk.
_WORTH_A_LOOK = re.compile(
    rb'"(?:usage"\s*:\s*[^n\s]|finish_reason"\s*:\s*"|error"\s*:\s*[{"])|\[DONE\]'
)
_FINISH = re.compile(rb'"finish_reason"\s*:\s*"')
_DONE = b"[DONE]"
_NULL = b"null"
_SPACE = b" \t\r\n"

Members = Mapping[str, msgspec.Raw]
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


class OpenAIStream:
    """Finds the usage on whichever event it sits, and holds back what tells of success.

    That is `[DONE]`, and before it the event with a finish reason, unless more content follows it
    (another choice's). The last value of each usage field counts; nothing is added up.
    """

    def __init__(self, max_event_bytes: int, *, hides_usage: bool) -> None:
        self._events = EventBuffer(max_event_bytes)
        self._max_held_bytes = 2 * max_event_bytes
        self._hides_usage = hides_usage
        self._held: list[bytes] = []
        self._usage: dict[str, msgspec.Raw] = {}
        self._strange_usage: bytes | None = None
        self._model_served: str | None = None
        self._seen_data = False
        self.complete = False
        self.failed = False
        self.ended = False

    @property
    def held(self) -> bytes:
        """What has been held back so far, in order."""
        return b"".join(self._held)

    @property
    def between_events(self) -> bool:
        """Whether a comment of ours may be put here."""
        return self._events.between_events

    @property
    def answer(self) -> Answer:
        """What the stream has said about itself so far."""
        if self._usage:
            usage = read_usage(msgspec.json.encode(self._usage))
        elif self._strange_usage is not None:
            usage = read_usage(self._strange_usage)
        else:
            usage = NO_USAGE
        return Answer(usage=usage, model_served=self._model_served)

    def feed(self, chunk: bytes) -> bytes:
        """Return what the client may have now."""
        unsearched, events = self._events.feed(chunk)
        if self._seen_data and not self._held and not _WORTH_A_LOOK.search(events):
            return unsearched + events if unsearched else events
        return unsearched + b"".join([self._pass(event) for event in split(events)])

    def end(self) -> bytes:
        """Judge a last event that lacks its blank line; return what the client may have of it."""
        rest = self._events.rest()
        return self._pass(rest) if rest else b""

    def _pass(self, event: bytes) -> bytes:
        """Return what the client may have now that this event has come."""
        data = data_of(event)
        if data is None or self.ended:
            # Comments change nothing, so they don't release what is held.
            return self._hold(event) if self._held else event
        if data.strip() == _DONE:
            self.ended = self.complete = True
            return self._hold(event)
        if not self._seen_data or _WORTH_A_LOOK.search(data):
            return self._look(event, data)
        return self._release(event)

    def _look(self, event: bytes, data: bytes) -> bytes:
        """Decode an event; return what the client may have now."""
        try:
            members = _members.decode(data)
        except (msgspec.DecodeError, RecursionError):
            return self._release(event)
        self._seen_data = True
        self._model_served = self._model_served or model_served(members)
        if bytes(members.get("error", _NULL)) != _NULL:
            self.failed = True
        has_usage = self._keep_usage(bytes(members.get("usage", _NULL)))
        no_choices = bytes(members.get("choices", b"")).translate(None, _SPACE) == b"[]"
        if has_usage and no_choices and self._hides_usage:
            return b""
        if _FINISH.search(data):
            self.complete = True
            return self._hold(event)
        if has_usage and self._held:
            return self._hold(event)
        return self._release(event)

    def _keep_usage(self, raw: bytes) -> bool:
        """Remember usage field by field; return whether there was any."""
        if raw == _NULL:
            return False
        try:
            fields = _members.decode(raw)
        except msgspec.DecodeError:
            self._strange_usage = raw
        else:
            self._usage |= {name: value for name, value in fields.items() if bytes(value) != _NULL}
        return True

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
