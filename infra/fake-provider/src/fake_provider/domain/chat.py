"""`/v1/chat/completions`."""

from collections.abc import Iterator
from typing import Any

import msgspec

from fake_provider.domain.answer import Answer, ToolCall
from fake_provider.domain.api import OPENAI, Api
from fake_provider.domain.call import Call, Message, Request, parse, words_of
from fake_provider.domain.frames import Choices, Frame, chunk_frames
from fake_provider.domain.usage import chat_wire, member

_encode = msgspec.json.encode


class StreamOptions(msgspec.Struct):
    """The options of a stream."""

    include_usage: bool | None = None


class Function(msgspec.Struct):
    """A function that the model may call."""

    name: str = ""


class Tool(msgspec.Struct):
    """A tool that the model may use."""

    function: Function | None = None


class ChatRequest(Request, kw_only=True):
    """What is read of a request."""

    messages: list[Message]
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = None
    tools: list[Tool] | None = None
    tool_choice: str | dict[str, Any] | None = None


_decoder = msgspec.json.Decoder(ChatRequest)


def _decode(body: bytes) -> Call:
    request = parse(_decoder, body)
    options = request.stream_options
    return Call(
        model=request.model,
        orders=request.orders,
        prompt_tokens=words_of(message.content for message in request.messages),
        stream=bool(request.stream),
        include_usage=options.include_usage if options else None,
        has_stream_options=options is not None,
        max_output_tokens=request.max_completion_tokens or request.max_tokens,
        choices=request.n or 1,
        tool_names=tuple(tool.function.name for tool in request.tools or () if tool.function),
        is_tool_forced=is_forced(request.tool_choice),
    )


def is_forced(tool_choice: str | dict[str, Any] | None) -> bool:
    """Return whether OpenAI's `tool_choice` leaves the model no way but to call a tool."""
    return isinstance(tool_choice, dict) or tool_choice == "required"


def _tool_call(tool: ToolCall, arguments: str) -> dict[str, Any]:
    return {
        "id": f"call_{tool.id}",
        "type": "function",
        "function": {"name": tool.name, "arguments": arguments},
    }


def _body(answer: Answer) -> bytes:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if answer.tools else answer.text,
        "refusal": None,
        "annotations": [],
    }
    if answer.tools:
        message["tool_calls"] = [_tool_call(tool, tool.arguments) for tool in answer.tools]
    choices = [
        {"index": index, "message": message, "logprobs": None, "finish_reason": answer.finish}
        for index in range(answer.call.choices)
    ]
    usage = member(chat_wire(answer.usage), answer.behaviour.usage_shape)
    return _encode({**_head(answer, "chat.completion"), "choices": choices, **usage})


def _head(answer: Answer, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{answer.id}",
        "object": kind,
        "created": answer.created_s,
        "model": answer.model,
        "service_tier": "default",
        "system_fingerprint": "fp_fake",
    }


def _frames(answer: Answer) -> Iterator[Frame]:
    choices = Choices(
        role=_choices(answer, {"role": "assistant", "content": _opening(answer), "refusal": None}),
        content=tuple(_content(answer)),
        finish=_choices(answer, {}, answer.finish),
        role_finish=_choices(answer, {"role": "assistant", "content": ""}, answer.finish),
        empty=_choices(answer, {}),
    )
    return chunk_frames(answer, _head(answer, "chat.completion.chunk"), choices)


def _opening(answer: Answer) -> str | None:
    return None if answer.tools else ""


def _choices(answer: Answer, delta: dict[str, Any], finish: str | None = None) -> bytes:
    return _encode(
        [
            {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
            for index in range(answer.call.choices)
        ]
    )


def _content(answer: Answer) -> Iterator[bytes]:
    for piece in answer.pieces:
        yield _choices(answer, {"content": piece})
    for index, tool in enumerate(answer.tools):
        for at, piece in enumerate(tool.pieces):
            part = {"function": {"arguments": piece}} if at else _tool_call(tool, piece)
            yield _choices(answer, {"tool_calls": [{"index": index, **part}]})


CHAT = Api("/v1/chat/completions", OPENAI, _decode, _body, _frames)
"""The API."""
