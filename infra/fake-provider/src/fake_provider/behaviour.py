"""How a request tells the provider what to do.

The gateway passes bodies on untouched but headers only by an allow-list, so the orders travel in
the body: `metadata.fake` is a JSON object as a string (OpenAI's metadata maps strings to strings),
`metadata.marker` is any name under which the journal can be asked for the request.
"""

from typing import Annotated, Literal

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]

UsageShape = Literal[
    "separate_chunk",
    "finish_chunk",
    "empty_delta",
    "role_finish",
    "every_chunk",
    "absent",
    "null",
    "string",
    "absurd",
]
"""Where a stream carries its usage, or what stands in its place.

`separate_chunk` is OpenAI's own: a last chunk without choices, only if the request asked for it.
`finish_chunk`, `empty_delta`, `role_finish` and `every_chunk` (cumulative) are sent unasked, as
other providers do. `absent` never sends any. `null`, `string` and `absurd` (1e10 of everything)
stand where the usage would. Without a stream only the last four make a difference.
"""

Finish = Literal["stop", "length", "tool_calls", "content_filter"]
ErrorBody = Literal["json", "html", "garbage", "empty"]


class Behaviour(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Everything a request can order. The default is a prompt, correct, short answer.

    A chunk is one piece of content in a stream; frames that carry no content (role, finish,
    usage, `[DONE]`) don't count. Limits "after chunks" apply when that many chunks were sent,
    before the next frame: 0 means after the headers. Where a limit lies beyond the answer, the
    answer gets longer, so that a fault that was ordered always happens.
    """

    # Before the headers.
    gate: str = ""
    """Wait until a test opens the gate of this name; see `gate_after_chunks`."""
    latency_ms: Count = 0

    # Pacing of what follows them.
    gate_after_chunks: Count | None = None
    """Wait at the gate at this place of the stream, not before the headers."""
    first_chunk_ms: Count = 0
    chunk_interval_ms: Count = 0
    slow_body_ms: Count = 0
    """Without a stream: the body goes out in ten pieces over this time."""

    # Content.
    text: str = ""
    unicode: bool = False
    """Answer in text of two, three and four bytes a character, U+2028 and U+0085 among it."""
    chunk_count: Count | None = None
    chunk_bytes: Count | None = None
    """UTF-8 bytes of each chunk's text (never half a character, so up to three less)."""
    endless_line_bytes: Count = 0
    """Put a chunk of this size in front: one line without an end for that long."""
    tools: Count = 0
    """Answer with this many tool calls instead of text."""
    finish_reason: Finish | None = None
    model_served: str = ""
    """The model that the answer names; default: the one that was asked for."""
    headers: dict[str, str] = {}
    """Response headers on top of the usual ones."""

    # Usage, as the API reports it: OpenAI's prompt tokens include cached ones, Anthropic's don't;
    # completion tokens include reasoning.
    prompt_tokens: Count | None = None
    cached_tokens: Count = 0
    cache_write_tokens: Count = 0
    cache_write_1h_tokens: Count = 0
    """Anthropic only: cache writes that live an hour; `cache_write_tokens` live five minutes."""
    completion_tokens: Count | None = None
    reasoning_tokens: Count = 0
    usage_extra: dict[str, int] = {}
    """Fields of usage that no client knows."""
    usage_shape: UsageShape = "separate_chunk"

    # Errors.
    status: Annotated[int, msgspec.Meta(ge=200, le=599)] | None = None
    """Answer with this status and an error; with 200, only with an `error_body` other than json."""
    error_type: str = ""
    error_code: str = ""
    error_message: str = "The fake provider was told to fail."
    error_body: ErrorBody = "json"
    retry_after_s: Count | None = None
    retry_after_ms: Count | None = None
    fail_times: Count = 0
    """Let `status`, `hang` and `drop` happen only to the first so many requests of `fail_key`."""
    fail_key: str = ""
    error_after_chunks: Count | None = None
    """Send an error event at this place of the stream and end it there."""
    reject_stream_options: bool = False
    """Refuse `stream_options`, as providers do that don't know it."""

    # The connection.
    hang: bool = False
    """Never answer: hold the connection until the caller leaves."""
    hang_after_chunks: Count | None = None
    drop: bool = False
    """Close the connection before the headers."""
    drop_after_chunks: Count | None = None
    half_frame: bool = False
    """A drop in the stream cuts its frame in half. Without a stream: drop after half the body."""
    reset: bool = False
    """A drop resets the connection (RST) instead of closing it."""

    # The bytes of a stream.
    crlf: bool = False
    comments: bool = False
    """A keep-alive comment before every frame."""
    split_bytes: Count = 0
    """Cut the stream into HTTP chunks of this many bytes; 1 cuts inside UTF-8 and inside CR LF."""
    omit_done: bool = False
    """End the stream in good order but without its last event."""
    gzip_unasked: bool = False
    """Compress the answer, whatever the request accepts."""


DEFAULT = Behaviour()

_decoder = msgspec.json.Decoder(Behaviour)


def fake(*, marker: str = "", **knobs: object) -> dict[str, str]:
    """Return the `metadata` that gives these orders; the knobs are the fields of Behaviour.

    For OpenAI: `client.chat.completions.create(..., metadata=fake(latency_ms=200))`.
    For Anthropic, and for calls without metadata: `extra_body={"metadata": fake(...)}`.

    Raises:
        msgspec.ValidationError: there is no such knob, or it doesn't take this value.

    """
    behaviour = msgspec.convert(knobs, Behaviour)
    metadata = {"fake": msgspec.json.encode(behaviour).decode()} if knobs else {}
    return metadata | ({"marker": marker} if marker else {})


def decode(orders: str) -> Behaviour:
    """Read `metadata.fake`; empty means the default.

    Raises:
        msgspec.DecodeError: it isn't JSON, or says something this provider doesn't know.

    """
    return _decoder.decode(orders) if orders else DEFAULT
