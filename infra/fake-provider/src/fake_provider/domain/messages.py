"""Anthropic's `/v1/messages`."""

from collections.abc import Iterator
from typing import Any

import msgspec

from fake_provider.domain.answer import Answer
from fake_provider.domain.api import ANTHROPIC, Api, failure_of
from fake_provider.domain.call import Call, Content, Message, Request, parse, words_of
from fake_provider.domain.errors import anthropic_error
from fake_provider.domain.frames import Frame, event
from fake_provider.domain.responses import NamedTool
from fake_provider.domain.usage import Usage, is_reported, member, messages_wire

_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}


class ToolChoice(msgspec.Struct):
    """Which tool the model must use."""

    type: str = "auto"


class MessagesRequest(Request, kw_only=True):
    """What is read of a request."""

    messages: list[Message]
    max_tokens: int
    system: Content = None
    tools: list[NamedTool] | None = None
    tool_choice: ToolChoice | None = None


_decoder = msgspec.json.Decoder(MessagesRequest)


def _decode(body: bytes) -> Call:
    request = parse(_decoder, body)
    choice = request.tool_choice
    return Call(
        model=request.model,
        orders=request.orders,
        prompt_tokens=words_of([request.system, *(one.content for one in request.messages)]),
        stream=bool(request.stream),
        max_output_tokens=request.max_tokens,
        tool_names=tuple(tool.name for tool in request.tools or () if tool.name),
        is_tool_forced=choice is not None and choice.type in {"any", "tool"},
    )


def _message(answer: Answer, content: list[dict[str, Any]], stop: str | None) -> dict[str, Any]:
    return {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
    }


def _stop(answer: Answer) -> str:
    return _STOP_REASONS[answer.finish]


def _body(answer: Answer) -> bytes:
    content: list[dict[str, Any]] = [
        {
            "type": "tool_use",
            "id": f"toolu_{tool.id}",
            "name": tool.name,
            "input": msgspec.Raw(tool.arguments),
        }
        for tool in answer.tools
    ] or [{"type": "text", "text": answer.text}]
    usage = member(messages_wire(answer.usage), answer.behaviour.usage_shape)
    return msgspec.json.encode({**_message(answer, content, _stop(answer)), **usage})


def _at_start(usage: Usage) -> Usage:
    """Return the usage that `message_start` reports: the input, and the first token out."""
    return msgspec.structs.replace(
        usage, completion_tokens=min(usage.completion_tokens, 1), reasoning_tokens=0
    )


def _frames(answer: Answer) -> Iterator[Frame]:
    shape, usage = answer.behaviour.usage_shape, answer.usage
    begun = _at_start(usage)
    started = {**_message(answer, [], None), **member(messages_wire(begun), shape)}
    yield Frame(
        event("message_start", {"type": "message_start", "message": started}),
        usage=begun if is_reported(shape) else None,
    )
    yield Frame(event("ping", {"type": "ping"}))
    yield from _blocks(answer)
    whole = {
        "type": "message_delta",
        "delta": {"stop_reason": _stop(answer), "stop_sequence": None},
        **member(_delta_wire(answer), shape),
    }
    yield Frame(event("message_delta", whole), usage=usage if is_reported(shape) else None)
    yield Frame(event("message_stop", {"type": "message_stop"}), is_last=True)


def _delta_wire(answer: Answer) -> dict[str, Any]:
    """Return the usage of `message_delta`.

    A reader keeps the fields that it doesn't repeat. Whole (`finish_chunk`) it repeats the input,
    as the API does where server tools run.
    """
    wire = messages_wire(answer.usage)
    if answer.behaviour.usage_shape == "finish_chunk":
        return wire
    kept = {"output_tokens", "output_tokens_details", *answer.usage.extra}
    return {name: value for name, value in wire.items() if name in kept}


def _blocks(answer: Answer) -> Iterator[Frame]:
    for index, tool in enumerate(answer.tools):
        begun = {"type": "tool_use", "id": f"toolu_{tool.id}", "name": tool.name, "input": {}}
        yield from _block(index, begun, "input_json_delta", tool.pieces)
    if not answer.tools:
        yield from _block(0, {"type": "text", "text": ""}, "text_delta", answer.pieces)


def _block(
    index: int, begun: dict[str, Any], kind: str, pieces: tuple[str, ...]
) -> Iterator[Frame]:
    member_name = "text" if kind == "text_delta" else "partial_json"
    start = {"type": "content_block_start", "index": index, "content_block": begun}
    yield Frame(event("content_block_start", start))
    for piece in pieces:
        delta = {"type": kind, member_name: piece}
        data = {"type": "content_block_delta", "index": index, "delta": delta}
        yield Frame(event("content_block_delta", data), is_chunk=True)
    stop = {"type": "content_block_stop", "index": index}
    yield Frame(event("content_block_stop", stop))


def _failure(answer: Answer, request_id: str) -> Frame:
    """Return the event by which a stream ends that failed."""
    return Frame(
        b"event: error\ndata: " + anthropic_error(failure_of(answer), request_id) + b"\n\n"
    )


MESSAGES = Api("/v1/messages", ANTHROPIC, _decode, _body, _frames, _failure)
"""The API."""
