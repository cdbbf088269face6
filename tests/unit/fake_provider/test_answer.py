"""What is answered to a call, before it takes the shape of an API."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.behaviour import Behaviour
from fake_provider.domain.answer import TEXT, UNICODE_TEXT, Answer, answer_to
from fake_provider.domain.call import Call, Orders, Part, words_of
from fake_provider.domain.completions import input_tokens
from fake_provider.domain.usage import Usage


def _answer(call: dict[str, Any] | None = None, **knobs: Any) -> Answer:
    asked = {"model": "m", "orders": Orders(), "prompt_tokens": 3, **(call or {})}
    return answer_to(Call(**asked), Behaviour(**knobs), "id", 1)


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        pytest.param([], 1, id="nothing still costs one"),
        pytest.param([None], 1, id="no content"),
        pytest.param(["two words", " a\n third "], 4, id="texts"),
        pytest.param([[Part("two words"), Part(), Part("three")]], 3, id="parts"),
    ],
)
def test_a_prompt_costs_its_words(contents: list[Any], words: int) -> None:
    assert words_of(contents) == words


@pytest.mark.parametrize(
    ("given_input", "tokens"),
    [
        pytest.param("two words", 2, id="a text"),
        pytest.param(["two words", "one"], 3, id="texts"),
        pytest.param([5, 6, 7], 3, id="tokens"),
        pytest.param([[5, 6], [7]], 3, id="lists of tokens"),
        pytest.param([], 1, id="nothing"),
    ],
)
def test_an_input_costs_its_tokens(given_input: Any, tokens: int) -> None:
    assert input_tokens(given_input) == tokens


@pytest.mark.parametrize("text", [TEXT, UNICODE_TEXT, " leading", "trailing \n", "one"])
def test_the_pieces_are_the_text(text: str) -> None:
    answer = _answer(text=text)

    assert answer.text == text
    assert answer.usage.completion_tokens == len(answer.pieces)


@given(size=st.integers(min_value=4, max_value=200), is_unicode=st.booleans())
def test_pieces_of_a_size_are_whole_characters(size: int, is_unicode: bool) -> None:
    (piece,) = _answer(chunk_count=1, chunk_bytes=size, unicode=is_unicode).pieces

    assert size - 3 <= len(piece.encode()) <= size


@pytest.mark.parametrize(
    ("call", "knobs", "pieces", "finish"),
    [
        pytest.param({}, {}, 5, "stop", id="nothing said"),
        pytest.param({"max_output_tokens": 2}, {}, 2, "length", id="the request's limit"),
        pytest.param({"max_output_tokens": 5}, {}, 5, "stop", id="a limit that is just enough"),
        pytest.param(
            {"max_output_tokens": 2}, {"chunk_count": 9}, 9, "stop", id="orders beat the limit"
        ),
        pytest.param(
            {"max_output_tokens": 2}, {"drop_after_chunks": 4}, 4, "length", id="so do faults"
        ),
        pytest.param({}, {"drop_after_chunks": 3}, 5, "stop", id="a fault within the answer"),
        pytest.param({}, {"hang_after_chunks": 8}, 8, "stop", id="a fault beyond the answer"),
        pytest.param({}, {"finish_reason": "content_filter"}, 5, "content_filter", id="ordered"),
        pytest.param({}, {"endless_line_bytes": 100}, 6, "stop", id="a long one in front"),
    ],
)
def test_how_long_it_gets_and_how_it_ends(
    call: dict[str, Any], knobs: dict[str, Any], pieces: int, finish: str
) -> None:
    answer = _answer(call, **knobs)

    assert len(answer.pieces) == pieces
    assert answer.finish == finish


@pytest.mark.parametrize(
    ("call", "knobs", "names"),
    [
        pytest.param({}, {"tools": 1}, ["get_weather"], id="ordered, none offered"),
        pytest.param(
            {"tool_names": ("a", "b")}, {"tools": 3}, ["a", "b", "a"], id="ordered, two offered"
        ),
        pytest.param(
            {"tool_names": ("a",), "is_tool_forced": True}, {}, ["a"], id="forced by the request"
        ),
        pytest.param({"tool_names": ("a",)}, {}, [], id="only offered"),
    ],
)
def test_tools(call: dict[str, Any], knobs: dict[str, Any], names: list[str]) -> None:
    answer = _answer(call, **knobs)

    assert [tool.name for tool in answer.tools] == names
    assert bool(answer.tools) != bool(answer.pieces)


@pytest.mark.parametrize(
    ("call", "knobs", "usage"),
    [
        pytest.param({}, {}, Usage(prompt_tokens=3, completion_tokens=5), id="words and chunks"),
        pytest.param(
            {"choices": 2}, {}, Usage(prompt_tokens=3, completion_tokens=10), id="two choices"
        ),
        pytest.param(
            {},
            {"reasoning_tokens": 7},
            Usage(prompt_tokens=3, completion_tokens=12, reasoning_tokens=7),
            id="reasoning is part of the completion",
        ),
        pytest.param(
            {},
            {"prompt_tokens": 0, "completion_tokens": 0},
            Usage(prompt_tokens=0, completion_tokens=0),
            id="nothing at all",
        ),
    ],
)
def test_usage(call: dict[str, Any], knobs: dict[str, Any], usage: Usage) -> None:
    assert _answer(call, **knobs).usage == usage
