"""OpenAI's usage objects, turned into classes of tokens that don't overlap."""

from collections.abc import Callable
from typing import Annotated

import msgspec

from contracts.usage import Usage
from edge_proxy.domain.adapters.adapter import Traits
from edge_proxy.domain.usage import UsageReading, reading

_Count = Annotated[int, msgspec.Meta(ge=0)]


class _InputDetails(msgspec.Struct):
    cached_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None


class _OutputDetails(msgspec.Struct):
    reasoning_tokens: _Count | None = None


class _Reported(msgspec.Struct, kw_only=True):
    """What completions and embeddings report."""

    input: _Count | None = msgspec.field(default=None, name="prompt_tokens")
    output: _Count | None = msgspec.field(default=None, name="completion_tokens")
    total: _Count | None = msgspec.field(default=None, name="total_tokens")
    of_input: _InputDetails | None = msgspec.field(default=None, name="prompt_tokens_details")
    of_output: _OutputDetails | None = msgspec.field(default=None, name="completion_tokens_details")


class _ReportedByResponses(_Reported, kw_only=True):
    """The same by the names that the Responses API has for it."""

    input: _Count | None = msgspec.field(default=None, name="input_tokens")
    output: _Count | None = msgspec.field(default=None, name="output_tokens")
    of_input: _InputDetails | None = msgspec.field(default=None, name="input_tokens_details")
    of_output: _OutputDetails | None = msgspec.field(default=None, name="output_tokens_details")


_reported = msgspec.json.Decoder(_Reported)
_reported_by_responses = msgspec.json.Decoder(_ReportedByResponses)


def read_completion(raw: bytes, traits: Traits) -> UsageReading:
    """Read the `usage` of a chat completion or a completion."""
    return _read(_decode(raw, _reported.decode), raw, traits)


def read_response(raw: bytes, traits: Traits) -> UsageReading:
    """Read the `usage` of a response."""
    return _read(_decode(raw, _reported_by_responses.decode), raw, traits)


def read_embeddings(raw: bytes) -> UsageReading:
    """Read the `usage` of embeddings: input alone, which some providers call only the total."""
    reported = _decode(raw, _reported.decode)
    if reported is not None and reported.input is None:
        reported = msgspec.structs.replace(reported, input=reported.total)
    return _read(reported, raw, Traits())


def _decode(raw: bytes, decode: Callable[[bytes], _Reported]) -> _Reported | None:
    try:
        return decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def _read(reported: _Reported | None, raw: bytes, traits: Traits) -> UsageReading:
    if reported is None or (reported.input is None and reported.output is None):
        return reading(None, raw)
    input_tokens, output_tokens = reported.input or 0, reported.output or 0
    details = reported.of_input or _InputDetails()
    cached_tokens = details.cached_tokens or 0
    if cached_tokens > input_tokens:
        return reading(None, raw)
    # Input includes what was read from a cache and what was written to one. Writes count as the
    # short-lived class, for which a price without one of its own has that of input.
    written_tokens = min(details.cache_write_tokens or 0, input_tokens - cached_tokens)
    return reading(
        Usage(
            input=input_tokens - cached_tokens - written_tokens,
            cache_read=cached_tokens,
            cache_write_5m=written_tokens,
            output=output_tokens,
            reasoning=_reasoning_outside(reported, traits),
        ),
        raw,
    )


def _reasoning_outside(reported: _Reported, traits: Traits) -> int:
    """Return the reasoning that isn't part of the output.

    OpenAI's output includes it. Where the total is larger than input and output by just the
    reasoning, the numbers themselves say that it isn't included.
    """
    reasoning_tokens = (reported.of_output or _OutputDetails()).reasoning_tokens or 0
    beyond = (reported.total or 0) - (reported.input or 0) - (reported.output or 0)
    if traits.reasoning_outside_output:
        return reasoning_tokens or max(0, beyond)
    return reasoning_tokens if reasoning_tokens == beyond else 0
