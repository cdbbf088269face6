"""OpenAI's usage object, turned into classes of tokens that don't overlap."""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from contracts.usage import Usage
from edge_proxy.domain.usage import NO_USAGE, UsageReading, reading

_MAX_MODEL_CHARS = 256

_Count = Annotated[int, msgspec.Meta(ge=0)]


class _PromptDetails(msgspec.Struct):
    cached_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None


class _Reported(msgspec.Struct):
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    prompt_tokens_details: _PromptDetails | None = None


_reported = msgspec.json.Decoder(_Reported)
_text = msgspec.json.Decoder(str)


def read_usage(raw: bytes) -> UsageReading:
    """Read a `usage` member: JSON of any kind, `null` included.

    Prompt tokens include those read from a cache and those written to one, so both are taken out of
    the input; writes count as the short-lived class, for which a price without one of its own has
    that of input. Completion tokens include reasoning, which has no class of its own here.
    """
    if raw.strip() == b"null":
        return NO_USAGE
    return reading(_usage(raw), raw)


def _usage(raw: bytes) -> Usage | None:
    try:
        reported = _reported.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    if reported.prompt_tokens is None and reported.completion_tokens is None:
        return None
    prompt_tokens = reported.prompt_tokens or 0
    details = reported.prompt_tokens_details
    cached_tokens = (details.cached_tokens or 0) if details else 0
    if cached_tokens > prompt_tokens:
        return None
    written_tokens = (details.cache_write_tokens or 0) if details else 0
    written_tokens = min(written_tokens, prompt_tokens - cached_tokens)
    return Usage(
        input=prompt_tokens - cached_tokens - written_tokens,
        cache_read=cached_tokens,
        cache_write_5m=written_tokens,
        output=reported.completion_tokens or 0,
    )


def model_served(members: Mapping[str, msgspec.Raw]) -> str | None:
    """Return the model that an answer names, None where it names none that could be one."""
    try:
        name = _text.decode(members.get("model", b"null"))
    except msgspec.DecodeError:
        return None
    return name[:_MAX_MODEL_CHARS] or None
