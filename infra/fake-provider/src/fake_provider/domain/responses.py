"""`/v1/responses`."""

from collections.abc import Iterator
from typing import Any

import msgspec

from fake_provider.domain.answer import Answer
from fake_provider.domain.api import OPENAI, Api, failure_of
from fake_provider.domain.call import Call, Message, Request, parse, words_of
from fake_provider.domain.chat import is_forced
from fake_provider.domain.frames import Frame, event
from fake_provider.domain.usage import is_reported, member, responses_wire

_EVENTS_BEFORE_CONTENT = 4


class NamedTool(msgspec.Struct):
    """A tool that the model may use."""

    name: str = ""


class ResponseRequest(Request, kw_only=True):
    """What is read of a request."""

    input: str | list[Message]
    instructions: str | None = None
    max_output_tokens: int | None = None
    tools: list[NamedTool] | None = None
    tool_choice: str | dict[str, Any] | None = None
    store: bool | None = None


_decoder = msgspec.json.Decoder(ResponseRequest)


def _decode(body: bytes) -> Call:
    request = parse(_decoder, body)
    given = request.input
    contents = [given] if isinstance(given, str) else [item.content for item in given]
    return Call(
        model=request.model,
        orders=request.orders,
        prompt_tokens=words_of([*contents, request.instructions]),
        stream=bool(request.stream),
        max_output_tokens=request.max_output_tokens,
        tool_names=tuple(tool.name for tool in request.tools or () if tool.name),
        is_tool_forced=is_forced(request.tool_choice),
        store=request.store is not False,
    )


def _text_item(answer: Answer, text: str | None, status: str) -> dict[str, Any]:
    return {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": [] if text is None else [_text_part(text)],
    }


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _tool_item(answer: Answer, index: int, arguments: str, status: str) -> dict[str, Any]:
    tool = answer.tools[index]
    return {
        "id": f"fc_{tool.id}",
        "type": "function_call",
        "call_id": f"call_{tool.id}",
        "name": tool.name,
        "arguments": arguments,
        "status": status,
    }


def _output(answer: Answer) -> list[dict[str, Any]]:
    if answer.tools:
        return [
            _tool_item(answer, index, tool.arguments, "completed")
            for index, tool in enumerate(answer.tools)
        ]
    return [_text_item(answer, answer.text, _end(answer))]


def _end(answer: Answer) -> str:
    return "incomplete" if answer.finish in {"length", "content_filter"} else "completed"


def _response(answer: Answer, status: str, usage: dict[str, Any]) -> dict[str, Any]:
    reason = "max_output_tokens" if answer.finish == "length" else "content_filter"
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": answer.created_s,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if status == "incomplete" else None,
        "instructions": None,
        "max_output_tokens": answer.call.max_output_tokens,
        "model": answer.model,
        "output": [] if status == "in_progress" else _output(answer),
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": answer.call.store,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "user": None,
        "metadata": {},
        **usage,
    }


def _usage(answer: Answer) -> dict[str, Any]:
    return member(responses_wire(answer.usage), answer.behaviour.usage_shape)


def _body(answer: Answer) -> bytes:
    return msgspec.json.encode(_response(answer, _end(answer), _usage(answer)))


def _frames(answer: Answer) -> Iterator[Frame]:
    number = 0
    for name, members, is_chunk in _events(answer):
        data = {"type": name, "sequence_number": number, **members}
        yield Frame(event(name, data), is_chunk)
        number += 1
    name = f"response.{_end(answer)}"
    yield _closing(answer, name, _response(answer, _end(answer), _usage(answer)), number)


def _closing(answer: Answer, name: str, response: dict[str, Any], number: int) -> Frame:
    reported = answer.usage if is_reported(answer.behaviour.usage_shape) else None
    data = {"type": name, "sequence_number": number, "response": response}
    return Frame(event(name, data), usage=reported, is_last=True)


def _events(answer: Answer) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Yield the name and the members of each event, and whether it is a chunk."""
    begun = _response(answer, "in_progress", {"usage": None})
    yield "response.created", {"response": begun}, False
    yield "response.in_progress", {"response": begun}, False
    if answer.tools:
        for index in range(len(answer.tools)):
            yield from _tool_events(answer, index)
    else:
        yield from _text_events(answer)


def _text_events(answer: Answer) -> Iterator[tuple[str, dict[str, Any], bool]]:
    item_at: dict[str, Any] = {"output_index": 0}
    part_at = {"item_id": f"msg_{answer.id}", "content_index": 0, **item_at}
    begun, whole = _text_part(""), _text_part(answer.text)
    item = _text_item(answer, None, "in_progress")
    yield "response.output_item.added", {**item_at, "item": item}, False
    yield "response.content_part.added", {**part_at, "part": begun}, False
    for piece in answer.pieces:
        yield "response.output_text.delta", {**part_at, "delta": piece, "logprobs": []}, True
    yield "response.output_text.done", {**part_at, "text": answer.text, "logprobs": []}, False
    yield "response.content_part.done", {**part_at, "part": whole}, False
    item = _text_item(answer, answer.text, _end(answer))
    yield "response.output_item.done", {**item_at, "item": item}, False


def _tool_events(answer: Answer, index: int) -> Iterator[tuple[str, dict[str, Any], bool]]:
    tool = answer.tools[index]
    item_at: dict[str, Any] = {"output_index": index}
    at = {"item_id": f"fc_{tool.id}", **item_at}
    item = _tool_item(answer, index, "", "in_progress")
    yield "response.output_item.added", {**item_at, "item": item}, False
    for piece in tool.pieces:
        yield "response.function_call_arguments.delta", {**at, "delta": piece}, True
    whole = {**at, "name": tool.name, "arguments": tool.arguments}
    yield "response.function_call_arguments.done", whole, False
    item = _tool_item(answer, index, tool.arguments, "completed")
    yield "response.output_item.done", {**item_at, "item": item}, False


def _failure(answer: Answer, _request_id: str) -> Frame:
    """Return `response.failed`: it carries the usage up to there."""
    error = failure_of(answer)
    code = error.code or "server_error"
    response = _response(answer, "failed", _usage(answer))
    response |= {"output": [], "error": {"code": code, "message": error.message}}
    sent = answer.behaviour.error_after_chunks or 0
    return _closing(answer, "response.failed", response, sent + _EVENTS_BEFORE_CONTENT)


RESPONSES = Api("/v1/responses", OPENAI, _decode, _body, _frames, _failure)
"""The API."""


def response_id(answer: Answer) -> str:
    """Return the id under which the answer can be fetched again."""
    return f"resp_{answer.id}"
