"""What a call used, and how each API words it."""

from typing import Any

import msgspec

from fake_provider.behaviour import UsageShape

ABSURD_TOKENS = 10_000_000_000


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens as the API reports them: see Behaviour on what includes what."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    extra: dict[str, int] = {}

    def so_far(self, sent: int, of: int) -> "Usage":
        """Return the usage when `sent` of `of` chunks are out; the completion is rounded down."""
        return msgspec.structs.replace(
            self, completion_tokens=self.completion_tokens * sent // of, reasoning_tokens=0
        )


ABSURD = Usage(prompt_tokens=ABSURD_TOKENS, completion_tokens=ABSURD_TOKENS)


def chat_wire(usage: Usage) -> dict[str, Any]:
    """Return the usage of `/v1/chat/completions` and `/v1/completions`."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
        **usage.extra,
    }


def embeddings_wire(usage: Usage) -> dict[str, Any]:
    """Return the usage of `/v1/embeddings`."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "total_tokens": usage.prompt_tokens,
        **usage.extra,
    }


def responses_wire(usage: Usage) -> dict[str, Any]:
    """Return the usage of `/v1/responses`."""
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        **usage.extra,
    }


def messages_wire(usage: Usage) -> dict[str, Any]:
    """Return the usage of `/v1/messages`."""
    return {
        "input_tokens": usage.prompt_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens + usage.cache_write_1h_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write_tokens,
            "ephemeral_1h_input_tokens": usage.cache_write_1h_tokens,
        },
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
        "service_tier": "standard",
        **usage.extra,
    }


def member(wire: dict[str, Any], shape: UsageShape) -> dict[str, Any]:
    """Return the `usage` member of an answer: nothing, or something odd, if so ordered."""
    if shape == "absent":
        return {}
    if shape == "null":
        return {"usage": None}
    if shape == "string":
        return {"usage": "12 tokens"}
    return {"usage": wire}


def is_reported(shape: UsageShape) -> bool:
    """Return whether the caller can read the usage."""
    return shape not in {"absent", "null", "string"}
