"""How each API words a usage."""

from typing import Any

import pytest

from fake_provider.behaviour import UsageShape
from fake_provider.domain.usage import (
    Usage,
    chat_wire,
    embeddings_wire,
    is_reported,
    member,
    messages_wire,
    responses_wire,
)

_USAGE = Usage(
    prompt_tokens=100,
    cached_tokens=50,
    cache_write_tokens=20,
    cache_write_1h_tokens=5,
    completion_tokens=40,
    reasoning_tokens=10,
    extra={"seconds": 3},
)


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        pytest.param(
            chat_wire(_USAGE),
            {"prompt_tokens": 100, "completion_tokens": 40, "total_tokens": 140},
            id="chat",
        ),
        pytest.param(
            embeddings_wire(_USAGE), {"prompt_tokens": 100, "total_tokens": 100}, id="embeddings"
        ),
        pytest.param(
            responses_wire(_USAGE),
            {"input_tokens": 100, "output_tokens": 40, "total_tokens": 140},
            id="responses",
        ),
        pytest.param(
            messages_wire(_USAGE),
            {
                "input_tokens": 100,
                "cache_read_input_tokens": 50,
                "cache_creation_input_tokens": 25,
                "output_tokens": 40,
            },
            id="messages",
        ),
    ],
)
def test_wire(wire: dict[str, Any], expected: dict[str, int]) -> None:
    assert expected.items() <= wire.items()
    assert wire["seconds"] == 3


@pytest.mark.parametrize(
    ("shape", "expected", "reported"),
    [
        pytest.param("separate_chunk", {"usage": {"a": 1}}, True, id="usual"),
        pytest.param("absent", {}, False, id="absent"),
        pytest.param("null", {"usage": None}, False, id="null"),
        pytest.param("string", {"usage": "12 tokens"}, False, id="string"),
        pytest.param("absurd", {"usage": {"a": 1}}, True, id="absurd"),
    ],
)
def test_member(shape: UsageShape, expected: dict[str, Any], reported: bool) -> None:
    assert member({"a": 1}, shape) == expected
    assert is_reported(shape) == reported


def test_cumulative_usage_ends_with_the_whole() -> None:
    sent = [_USAGE.so_far(sent, 3).completion_tokens for sent in range(4)]

    assert sent == [0, 13, 26, 40]
