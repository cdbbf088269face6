"""Streams of OpenAI's Responses API."""

import re
from collections.abc import Callable, Mapping

import msgspec

from edge_proxy.domain.adapters.answer import Answer, Outgoing, model_served
from edge_proxy.domain.adapters.scanner import Fate
from edge_proxy.domain.usage import ReportedParts, UsageReading

_WORTH_READING = (
    re.compile(rb'"type"\s*:\s*"(?:response\.(?:completed|incomplete|failed)|error)"'),
)
_SUCCESS = frozenset({"response.completed", "response.incomplete"})
_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")
_FAILURE = "response.failed"
_ERROR = "error"


class _Event(msgspec.Struct):
    type: str = ""
    response: dict[str, msgspec.Raw] | None = None


_event = msgspec.json.Decoder(_Event)
_text = msgspec.json.Decoder(str)


def is_id(text: str) -> bool:
    """Say whether a text may stand in an address as a response's id."""
    return _ID.fullmatch(text) is not None


def stored_id(members: Mapping[str, msgspec.Raw]) -> str | None:
    """Return the id by which a response can be fetched again; None: it isn't stored."""
    if bytes(members.get("store", b"")) == b"false":
        return None
    try:
        found = _text.decode(members.get("id", b"null"))
    except msgspec.DecodeError:
        return None
    return found if is_id(found) else None


class ResponseReader:
    """Finds the usage in the event that closes the response, however it ended."""

    worth_reading = _WORTH_READING

    def __init__(self, read_usage: Callable[[bytes], UsageReading], _outgoing: Outgoing) -> None:
        self._read_usage = read_usage
        self._usage = ReportedParts()
        self._model_served: str | None = None
        self._stored_id: str | None = None
        self.complete = False
        self.failed = False

    @property
    def answer(self) -> Answer:
        """What the stream has said about itself so far."""
        return Answer(
            usage=self._usage.read_by(self._read_usage),
            model_served=self._model_served,
            stored_id=self._stored_id,
        )

    def read(self, data: bytes) -> Fate | None:
        """Read an event; None: it isn't one."""
        try:
            event = _event.decode(data)
        except (msgspec.DecodeError, RecursionError):
            return None
        response = event.response or {}
        self._model_served = self._model_served or model_served(response)
        self._stored_id = self._stored_id or stored_id(response)
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
