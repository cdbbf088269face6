"""What is answered to a call, before it takes the shape of an API."""

import functools
import re

import msgspec

from fake_provider.behaviour import Behaviour, Finish
from fake_provider.domain.call import Call
from fake_provider.domain.usage import ABSURD, Usage

TEXT = "Hello from the fake provider."
UNICODE_TEXT = "naïve \u2028\u0085 Grüße 你好 🦜👩‍🚀 ¿qué? \u2029"
_TOOL_ARGUMENTS = '{"city": "Zürich", "days": 3}'
_TOOL_PIECES = 3


Ending = tuple[tuple[str, ...], Finish]
"""The pieces of a text, and why it ends."""


_NO_TEXT: Ending = ((), "tool_calls")


class ToolCall(msgspec.Struct, frozen=True):
    """One tool that the model wants called; the arguments are JSON, whole and in pieces."""

    id: str
    name: str
    pieces: tuple[str, ...]

    @property
    def arguments(self) -> str:
        """The arguments as one JSON text."""
        return "".join(self.pieces)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer. `id` is unique in the provider's life and takes each API's own prefix."""

    id: str
    created_s: int
    call: Call
    behaviour: Behaviour
    model: str
    pieces: tuple[str, ...]
    """The text, cut as a stream sends it; empty where tools are called."""

    tools: tuple[ToolCall, ...]
    finish: Finish
    usage: Usage

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.pieces)


def answer_to(call: Call, behaviour: Behaviour, answer_id: str, created_s: int) -> Answer:
    """Decide what is answered."""
    count = behaviour.tools or int(call.is_tool_forced)
    tools = tuple(_tool(call, behaviour, f"{answer_id}{index}", index) for index in range(count))
    pieces, finish = _NO_TEXT if tools else _text(call, behaviour)
    return Answer(
        id=answer_id,
        created_s=created_s,
        call=call,
        behaviour=behaviour,
        model=behaviour.model_served or call.model,
        pieces=pieces,
        tools=tools,
        finish=behaviour.finish_reason or finish,
        usage=_usage(call, behaviour, sum(len(tool.pieces) for tool in tools) or len(pieces)),
    )


def _text(call: Call, behaviour: Behaviour) -> Ending:
    """Return the text of an answer without tools."""
    source = behaviour.text or (UNICODE_TEXT if behaviour.unicode else TEXT)
    count = _chunk_count(behaviour, len(_words(source)))
    finish: Finish = "stop"
    limit = call.max_output_tokens
    is_free = behaviour.chunk_count is None and behaviour.completion_tokens is None
    if is_free and limit is not None and limit < count:
        count, finish = _chunk_count(behaviour, limit), "length"
    pieces = _pieces(source, count, behaviour.chunk_bytes)
    if behaviour.endless_line_bytes:
        pieces = ("x" * behaviour.endless_line_bytes, *pieces)
    return pieces, finish


def _chunk_count(behaviour: Behaviour, natural: int) -> int:
    """Return how many chunks; an ordered fault must find its chunk."""
    limits = (
        behaviour.gate_after_chunks,
        behaviour.hang_after_chunks,
        behaviour.drop_after_chunks,
        behaviour.error_after_chunks,
    )
    count = natural if behaviour.chunk_count is None else behaviour.chunk_count
    return max(count, *(limit or 0 for limit in limits))


@functools.lru_cache(maxsize=1024)
def _words(text: str) -> list[str]:
    """Return the words, each with the space before it, so that joined they are the text."""
    return re.findall(r"\s*\S+|\s+$", text)


@functools.lru_cache(maxsize=1024)
def _pieces(source: str, count: int, size_bytes: int | None) -> tuple[str, ...]:
    if size_bytes is None:
        words = _words(source)
        return tuple(words[index % len(words)] for index in range(count))
    encoded = source.encode()
    filler = (encoded * (size_bytes // len(encoded) + 1))[:size_bytes]
    return (filler.decode(errors="ignore"),) * count


def _tool(call: Call, behaviour: Behaviour, tool_id: str, index: int) -> ToolCall:
    name = call.tool_names[index % len(call.tool_names)] if call.tool_names else "get_weather"
    count = max(_chunk_count(behaviour, _TOOL_PIECES), 1)
    size = -(-len(_TOOL_ARGUMENTS) // count)  # rounded up
    pieces = tuple(_TOOL_ARGUMENTS[at * size : (at + 1) * size] for at in range(count))
    return ToolCall(tool_id, name, pieces)


def _usage(call: Call, behaviour: Behaviour, pieces: int) -> Usage:
    if behaviour.usage_shape == "absurd":
        return ABSURD
    prompt, completion = behaviour.prompt_tokens, behaviour.completion_tokens
    return Usage(
        prompt_tokens=call.prompt_tokens if prompt is None else prompt,
        cached_tokens=behaviour.cached_tokens,
        cache_write_tokens=behaviour.cache_write_tokens,
        cache_write_1h_tokens=behaviour.cache_write_1h_tokens,
        completion_tokens=pieces * call.choices + behaviour.reasoning_tokens
        if completion is None
        else completion,
        reasoning_tokens=behaviour.reasoning_tokens,
        extra=behaviour.usage_extra,
    )
