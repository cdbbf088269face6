"""`/v1/completions`, the older of OpenAI's two."""

from collections.abc import Iterator
from typing import Any

import msgspec

from fake_provider.domain.answer import Answer
from fake_provider.domain.api import OPENAI, Api
from fake_provider.domain.call import Call, Request, parse, words_of
from fake_provider.domain.chat import StreamOptions
from fake_provider.domain.frames import Choices, Frame, chunk_frames
from fake_provider.domain.usage import chat_wire, member

_encode = msgspec.json.encode

TokenIds = list[int]


class CompletionRequest(Request, kw_only=True):
    """What is read of a request."""

    prompt: str | list[str | int | TokenIds]
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    n: int | None = None


_decoder = msgspec.json.Decoder(CompletionRequest)


def input_tokens(given: str | list[str | int | TokenIds]) -> int:
    """Return what an input costs that may be text, texts, tokens or lists of tokens."""
    if isinstance(given, str):
        return words_of([given])
    tokens = 0
    for one in given:
        if isinstance(one, str):
            tokens += words_of([one])
        else:
            tokens += 1 if isinstance(one, int) else len(one)
    return max(tokens, 1)


def _decode(body: bytes) -> Call:
    request = parse(_decoder, body)
    options = request.stream_options
    return Call(
        model=request.model,
        orders=request.orders,
        prompt_tokens=input_tokens(request.prompt),
        stream=bool(request.stream),
        include_usage=options.include_usage if options else None,
        has_stream_options=options is not None,
        max_output_tokens=request.max_tokens,
        choices=request.n or 1,
    )


def _head(answer: Answer) -> dict[str, Any]:
    return {
        "id": f"cmpl-{answer.id}",
        "object": "text_completion",
        "created": answer.created_s,
        "model": answer.model,
        "system_fingerprint": "fp_fake",
    }


def _choices(answer: Answer, text: str, finish: str | None) -> list[dict[str, Any]]:
    return [
        {"index": index, "text": text, "logprobs": None, "finish_reason": finish}
        for index in range(answer.call.choices)
    ]


def _finish(answer: Answer) -> str:
    return "stop" if answer.finish == "tool_calls" else answer.finish


def _body(answer: Answer) -> bytes:
    choices = _choices(answer, answer.text, _finish(answer))
    usage = member(chat_wire(answer.usage), answer.behaviour.usage_shape)
    return _encode({**_head(answer), "choices": choices, **usage})


def _frames(answer: Answer) -> Iterator[Frame]:
    finish = _encode(_choices(answer, "", _finish(answer)))
    choices = Choices(
        role=None,
        content=tuple(_encode(_choices(answer, piece, None)) for piece in answer.pieces),
        finish=finish,
        role_finish=finish,
        empty=_encode(_choices(answer, "", None)),
    )
    return chunk_frames(answer, _head(answer), choices)


COMPLETIONS = Api("/v1/completions", OPENAI, _decode, _body, _frames)
"""The API."""
