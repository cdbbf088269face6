"""Streams of OpenAI's Responses API."""

import re
from collections.abc import Callable

import msgspec

from edge_proxy.domain.adapters.answer import Answer, Outgoing, model_served
from edge_proxy.domain.adapters.scanner import Fate
from edge_proxy.domain.usage import ReportedParts, UsageReading

_WORTH_READING = (
    re.compile(rb'"type"\s*:\s*"(?:response\.(?:completed|incomplete|failed)|error)"'),
)
_SUCCESS = frozenset({"response.completed", "response.incomplete"})
_FAILURE = "response.failed"
_ERROR = "error"


class _Event(msgspec.Struct):
    type: str = ""
    response: dict[str, msgspec.Raw] | None = None


_event = msgspec.json.Decoder(_Event)


class ResponseReader:
    """Finds the usage in the event that closes the response, however it ended."""

    worth_reading = _WORTH_READING

    def __init__(self, read_usage: Callable[[bytes], UsageReading], _outgoing: Outgoing) -> None:
        self._read_usage = read_usage
        self._usage = ReportedParts()
        self._model_served: str | None = None
        self.complete = False
        self.failed = False

    @property
    def answer(self) -> Answer:
        """What the stream has said about itself so far."""
        return Answer(usage=self._usage.read_by(self._read_usage), model_served=self._model_served)

    def read(self, data: bytes) -> Fate | None:
        """Read an event; None: it isn't one."""
        try:
            event = _event.decode(data)
        except (msgspec.DecodeError, RecursionError):
            return None
        response = event.response or {}
        self._model_served = self._model_served or model_served(response)
        self._usage.add(response.get("usage"))
        if event.type in _SUCCESS:
            self.complete = True
            return Fate.LAST
        if event.type in (_FAILURE, _ERROR):
            self.failed = True
            return Fate.LAST if event.type == _FAILURE else Fate.PASS
        return Fate.PASS

    def trim(self, events: bytes) -> bytes:
        """Return the events as they are: nothing was asked for."""
        return events
