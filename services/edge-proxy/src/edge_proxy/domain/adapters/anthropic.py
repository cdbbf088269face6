"""Anthropic's API."""

import re
from types import MappingProxyType
from typing import Annotated

import msgspec

from contracts.usage import Usage
from edge_proxy.domain import endpoints
from edge_proxy.domain.adapters.adapter import Adapter, Api, Traits
from edge_proxy.domain.adapters.answer import Answer, Outgoing, model_served
from edge_proxy.domain.adapters.bodies import untouched
from edge_proxy.domain.adapters.scanner import Fate
from edge_proxy.domain.usage import ReportedParts, UsageReading, reading

_WORTH_READING = (
    re.compile(rb'"type"\s*:\s*"(?:message_start|message_delta|message_stop|error|ping)"'),
)

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Members = dict[str, msgspec.Raw]


def anthropic(_traits: Traits) -> Adapter:
    """Return the adapter; Anthropic's providers don't differ."""
    messages = Api(
        path="/messages", outgoing=untouched, read_usage=read_usage, new_reader=MessageReader
    )
    return Adapter(
        name="anthropic",
        apis=MappingProxyType({endpoints.MESSAGES.path: messages}),
        credentials=_credentials,
    )


def _credentials(api_key: str) -> tuple[tuple[str, str], ...]:
    return (("x-api-key", api_key),)


class _CacheCreation(msgspec.Struct):
    ephemeral_5m_input_tokens: _Count | None = None
    ephemeral_1h_input_tokens: _Count | None = None


class _Reported(msgspec.Struct):
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    cache_read_input_tokens: _Count | None = None
    cache_creation_input_tokens: _Count | None = None
    cache_creation: _CacheCreation | None = None


_reported = msgspec.json.Decoder(_Reported)


def read_usage(raw: bytes) -> UsageReading:
    """Read a `usage` member.

    Input excludes what was read from a cache and what was written to one; output includes
    thinking. Cache writes that the breakdown doesn't name are of five minutes, the API's default.
    """
    try:
        reported = _reported.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return reading(None, raw)
    if reported.input_tokens is None and reported.output_tokens is None:
        return reading(None, raw)
    parts = reported.cache_creation or _CacheCreation()
    written_1h = parts.ephemeral_1h_input_tokens or 0
    written = max(
        reported.cache_creation_input_tokens or 0,
        written_1h + (parts.ephemeral_5m_input_tokens or 0),
    )
    return reading(
        Usage(
            input=reported.input_tokens or 0,
            cache_read=reported.cache_read_input_tokens or 0,
            cache_write_5m=written - written_1h,
            cache_write_1h=written_1h,
            output=reported.output_tokens or 0,
        ),
        raw,
    )


class _Delta(msgspec.Struct):
    stop_reason: str | None = None


class _Event(msgspec.Struct):
    type: str = ""
    message: _Members | None = None
    """Of `message_start`."""
    delta: _Delta | None = None
    usage: msgspec.Raw = msgspec.Raw(b"null")
    """Of `message_delta`."""


_event = msgspec.json.Decoder(_Event)


class MessageReader:
    """Finds the usage in the first event and in `message_delta`, which corrects it.

    Of success tell `message_delta` with a stop reason, and `message_stop`.
    """

    worth_reading = _WORTH_READING

    def __init__(self, _outgoing: Outgoing) -> None:
        self._usage = ReportedParts()
        self._model_served: str | None = None
        self.complete = False
        self.failed = False

    @property
    def answer(self) -> Answer:
        """What the stream has said about itself so far."""
        return Answer(usage=self._usage.read_by(read_usage), model_served=self._model_served)

    def read(self, data: bytes) -> Fate | None:
        """Read an event; None: it isn't one."""
        try:
            event = _event.decode(data)
        except (msgspec.DecodeError, RecursionError):
            return None
        message = event.message or {}
        self._model_served = self._model_served or model_served(message)
        self._usage.add(message.get("usage"))
        self._usage.add(event.usage)
        if event.type == "message_stop":
            self.complete = True
            return Fate.LAST
        if event.type == "message_delta" and event.delta and event.delta.stop_reason:
            self.complete = True
            return Fate.HOLD
        if event.type == "error":
            self.failed = True
        return Fate.FOLLOW if event.type == "ping" else Fate.PASS

    def trim(self, events: bytes) -> bytes:
        """Return the events as they are: nothing was asked for."""
        return events
