"""Streams of chunks: OpenAI's chat completions and completions."""

import re
from collections.abc import Callable

import msgspec

from edge_proxy.domain.adapters.answer import Answer, Outgoing, model_served
from edge_proxy.domain.adapters.bodies import named, renamed
from edge_proxy.domain.adapters.scanner import Fate
from edge_proxy.domain.asked import Asked, Members
from edge_proxy.domain.usage import ReportedParts, UsageReading

# Most providers send `"usage":null` and `"finish_reason":null` on every chunk.
_FINISH = re.compile(rb'"finish_reason"\s*:\s*"')
_WORTH_READING = (
    _FINISH,
    re.compile(rb'"usage"\s*:\s*[^n\s]'),
    re.compile(rb'"error"\s*:\s*[{"]'),
    re.compile(rb"\[DONE\]"),
)
_DONE = b"[DONE]"
_NULL = b"null"
_SPACE = b" \t\r\n"
_TRUE = msgspec.Raw(b"true")
_INCLUDE_USAGE = b'{"include_usage":true}'
_USAGE_NULL = b',"usage":null'
# What stands behind it where a chunk ends with it, or where OpenAI pads its chunks.
_BEHIND_USAGE_NULL = (b"}\n\n", b',"obfuscation":"', b"}\r\n\r\n")

_object = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def asking_for_usage(asked: Asked, model: str) -> Outgoing:
    """Return the body to send, which asks for the stream's usage where that can be asked."""
    if not asked.stream:
        return Outgoing(named(asked, model))
    try:
        options = _object.decode(asked.members.get("stream_options", b"null"))
    except msgspec.DecodeError:
        # Not options at all: the provider's refusal is the client's answer.
        return Outgoing(named(asked, model))
    if options is not None and bytes(options.get("include_usage", b"")) == b"true":
        return Outgoing(named(asked, model))
    return Outgoing(_with_usage(asked, model, options), hides_usage=True)


def without_options(asked: Asked, model: str) -> Outgoing:
    """Return the body to send to a provider that refuses `stream_options`."""
    if not asked.stream or "stream_options" not in asked.members:
        return Outgoing(named(asked, model))
    members = dict(renamed(asked, model))
    del members["stream_options"]
    return Outgoing(asked.with_members(members))


def _with_usage(asked: Asked, model: str, options: Members | None) -> bytes:
    if model == asked.model and "stream_options" not in asked.members:
        return asked.with_appended("stream_options", _INCLUDE_USAGE)
    wanted = msgspec.json.encode({**(options or {}), "include_usage": _TRUE})
    return asked.with_members({**renamed(asked, model), "stream_options": msgspec.Raw(wanted)})


class ChunkReader:
    """Finds the usage on whichever chunk it sits.

    Of success tell `[DONE]`, and before it the chunk with a finish reason, unless more content
    follows it (another choice's).
    """

    worth_reading = _WORTH_READING

    def __init__(self, read_usage: Callable[[bytes], UsageReading], outgoing: Outgoing) -> None:
        self._read_usage = read_usage
        self._hides_usage = outgoing.hides_usage
        self._usage = ReportedParts()
        self._model_served: str | None = None
        self.complete = False
        self.failed = False

    @property
    def answer(self) -> Answer:
        """What the stream has said about itself so far."""
        return Answer(usage=self._usage.read_by(self._read_usage), model_served=self._model_served)

    def read(self, data: bytes) -> Fate | None:
        """Read a chunk; None: it isn't one."""
        if data.strip() == _DONE:
            self.complete = True
            return Fate.LAST
        try:
            members = _members.decode(data)
        except (msgspec.DecodeError, RecursionError):
            return None
        self._model_served = self._model_served or model_served(members)
        if bytes(members.get("error", _NULL)) != _NULL:
            self.failed = True
        has_usage = self._usage.add(members.get("usage"))
        no_choices = bytes(members.get("choices", b"")).translate(None, _SPACE) == b"[]"
        if has_usage and no_choices and self._hides_usage:
            return Fate.HIDE
        if _FINISH.search(data):
            self.complete = True
            return Fate.HOLD
        return Fate.FOLLOW if has_usage else Fate.PASS

    def trim(self, events: bytes) -> bytes:
        """Return chunks without the `"usage":null` that providers write because we asked."""
        if not self._hides_usage:
            return events
        for behind in _BEHIND_USAGE_NULL:
            if _USAGE_NULL not in events:
                break
            events = events.replace(_USAGE_NULL + behind, behind)
        return events
