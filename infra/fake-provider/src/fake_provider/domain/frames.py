"""The frames of an event stream, and the chunks that chat and completions share."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from fake_provider.domain.answer import Answer
from fake_provider.domain.usage import Usage, chat_wire, is_reported, member

DONE = b"data: [DONE]\n\n"
_encode = msgspec.json.encode


class Frame(NamedTuple):
    """One event, ready to be sent, ended by an empty line; lines end in LF."""

    data: bytes
    is_chunk: bool = False
    """Whether it carries content; the behaviour counts these."""

    usage: Usage | None = None
    """The usage that a reader of this frame knows."""

    is_last: bool = False
    """Whether it says that the stream ended in good order."""


Tail = tuple[bytes, Usage | None]
"""How a chunk's JSON ends, and the usage that stands there."""


class Choices(NamedTuple):
    """How an API writes the `choices` of its chunks, as JSON."""

    role: bytes | None
    content: tuple[bytes, ...]
    finish: bytes
    role_finish: bytes
    empty: bytes


def event(name: str, data: dict[str, Any]) -> bytes:
    """Return a named event, as the Responses and Messages APIs send them."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), _encode(data))


def cut_object(data: dict[str, Any]) -> bytes:
    """Return an object's JSON without its closing brace, to be carried on by hand."""
    return _encode(data)[:-1]


def chunk_frames(answer: Answer, head: dict[str, Any], choices: Choices) -> Iterator[Frame]:
    """Yield the stream of an OpenAI chat or text completion; see UsageShape on the variants."""
    return _Chunks(answer, head).frames(choices)


class _Chunks:
    """Writes chunks: what all of them share is encoded once."""

    def __init__(self, answer: Answer, head: dict[str, Any]) -> None:
        self._usage = answer.usage
        self._shape = answer.behaviour.usage_shape
        self._asked = bool(answer.call.include_usage) and self._shape != "absent"
        self._head = b"data: " + cut_object(head) + b',"choices":'
        self._plain: Tail = (b',"usage":null}\n\n' if self._asked else b"}\n\n", None)

    def frames(self, choices: Choices) -> Iterator[Frame]:
        total = len(choices.content)
        if choices.role is not None:
            yield self._frame(choices.role, self._tail(0, total))
        for sent, content in enumerate(choices.content, 1):
            yield self._frame(content, self._tail(sent, total), is_chunk=True)
        yield from self._end(choices)
        yield Frame(DONE, is_last=True)

    def _end(self, choices: Choices) -> Iterator[Frame]:
        whole = self._usage_tail(self._usage)
        if self._shape == "role_finish":
            yield self._frame(choices.role_finish, whole)
        elif self._shape in {"finish_chunk", "every_chunk"}:
            yield self._frame(choices.finish, whole)
        elif self._shape == "empty_delta":
            yield self._frame(choices.finish, self._plain)
            yield self._frame(choices.empty, whole)
        else:
            yield self._frame(choices.finish, self._plain)
            if self._asked:
                yield self._frame(b"[]", whole)

    def _tail(self, sent: int, total: int) -> Tail:
        if self._shape != "every_chunk":
            return self._plain
        return self._usage_tail(self._usage.so_far(sent, max(total, 1)))

    def _usage_tail(self, usage: Usage) -> Tail:
        written = _encode(member(chat_wire(usage), self._shape))
        return b"," + written[1:] + b"\n\n", usage if is_reported(self._shape) else None

    def _frame(self, choices: bytes, tail: Tail, *, is_chunk: bool = False) -> Frame:
        return Frame(self._head + choices + tail[0], is_chunk, tail[1])
