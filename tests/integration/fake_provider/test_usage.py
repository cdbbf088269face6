"""Orders about usage: its numbers, where it stands, and what stands there instead."""

from typing import Any

import anthropic
import httpx
import openai
import pytest
from integration.fake_provider.asking import MESSAGES, post, stream_of
from integration.fake_provider.sse import chunks_of
from integration.fake_provider.witness import Witness

from fake_provider.behaviour import fake
from fake_provider.domain.usage import ABSURD_TOKENS


async def test_usage_of_every_class(fake_openai: openai.AsyncOpenAI) -> None:
    answer = await fake_openai.chat.completions.create(
        model="m",
        messages=MESSAGES,
        metadata=fake(
            prompt_tokens=10_000,
            cached_tokens=8_000,
            cache_write_tokens=500,
            completion_tokens=1_000,
            reasoning_tokens=50,
            usage_extra={"images": 3},
        ),
    )

    usage = answer.usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (10_000, 1_000)
    assert usage.total_tokens == 11_000
    assert usage.prompt_tokens_details is not None
    assert usage.prompt_tokens_details.cached_tokens == 8_000
    assert usage.prompt_tokens_details.cache_write_tokens == 500
    assert usage.completion_tokens_details is not None
    assert usage.completion_tokens_details.reasoning_tokens == 50
    assert usage.model_extra == {"images": 3}


async def test_usage_without_orders_is_words_in_and_chunks_out(
    fake_openai: openai.AsyncOpenAI,
) -> None:
    answer = await fake_openai.chat.completions.create(model="m", messages=MESSAGES)

    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (3, 5)
    assert answer.choices[0].message.content == "Hello from the fake provider."


_WHOLE = {"prompt_tokens": 100, "completion_tokens": 40, "total_tokens": 140}


@pytest.mark.parametrize(
    ("shape", "asked", "expected"),
    [
        pytest.param("separate_chunk", True, ["", "", "", "", "usage, no choice"], id="separate"),
        pytest.param("separate_chunk", False, ["", "", "", ""], id="separate, not asked for"),
        pytest.param("finish_chunk", False, ["", "", "", "usage, finish"], id="with the finish"),
        pytest.param(
            "empty_delta", False, ["", "", "", "", "usage, choice"], id="with an empty delta"
        ),
        pytest.param(
            "role_finish", False, ["", "", "", "usage, finish"], id="with role and finish"
        ),
        pytest.param("absent", True, ["", "", "", ""], id="absent although asked for"),
    ],
)
async def test_where_a_stream_carries_its_usage(
    http: httpx.AsyncClient, shape: str, asked: bool, expected: list[str]
) -> None:
    def describe(chunk: dict[str, Any]) -> str:
        if not chunk.get("usage"):
            return ""
        assert _WHOLE.items() <= chunk["usage"].items()
        if not chunk["choices"]:
            return "usage, no choice"
        return "usage, finish" if chunk["choices"][0]["finish_reason"] else "usage, choice"

    stream = await stream_of(
        http,
        with_usage=asked,
        usage_shape=shape,
        chunk_count=2,
        prompt_tokens=100,
        completion_tokens=40,
    )

    chunks = chunks_of(stream)
    assert [describe(chunk) for chunk in chunks] == expected
    if shape == "role_finish":
        assert chunks[-1]["choices"][0]["delta"]["role"] == "assistant"


async def test_usage_on_every_chunk_is_cumulative(http: httpx.AsyncClient) -> None:
    stream = await stream_of(http, usage_shape="every_chunk", chunk_count=3, completion_tokens=10)

    tokens = [chunk["usage"]["completion_tokens"] for chunk in chunks_of(stream)]
    assert tokens == [0, 3, 6, 10, 10]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        pytest.param("null", {"usage": None}, id="null"),
        pytest.param("string", {"usage": "12 tokens"}, id="a string"),
        pytest.param("absent", {}, id="absent"),
    ],
)
async def test_usage_that_is_none(
    http: httpx.AsyncClient, witness: Witness, shape: str, expected: dict[str, Any]
) -> None:
    marker = f"no usage: {shape}"
    answer = await post(http, metadata=fake(marker=marker, usage_shape=shape))
    streamed = chunks_of(await stream_of(http, marker=marker, usage_shape=shape))

    assert {key: value for key, value in answer.json().items() if key == "usage"} == expected
    if shape != "absent":
        assert streamed[-1]["choices"] == []
        assert streamed[-1]["usage"] == expected["usage"]
    counts = await witness.counts(marker=marker)
    assert (counts["requests"], counts["with_usage"]) == (2, 0)


async def test_absurd_usage(http: httpx.AsyncClient) -> None:
    answer = await post(http, metadata=fake(usage_shape="absurd"))

    assert answer.json()["usage"]["prompt_tokens"] == ABSURD_TOKENS
    assert answer.json()["usage"]["completion_tokens"] == ABSURD_TOKENS


@pytest.mark.parametrize("shape", ["separate_chunk", "finish_chunk"])
async def test_anthropic_usage(fake_anthropic: anthropic.AsyncAnthropic, shape: str) -> None:
    knobs: dict[str, Any] = {
        "prompt_tokens": 100,
        "cached_tokens": 50,
        "cache_write_tokens": 20,
        "cache_write_1h_tokens": 5,
        "completion_tokens": 40,
        "usage_shape": shape,
    }
    stream = await fake_anthropic.messages.create(
        model="m",
        max_tokens=100,
        messages=MESSAGES,
        stream=True,
        extra_body={"metadata": fake(**knobs)},
    )
    events = [event async for event in stream]

    start, delta = events[0], events[-2]
    assert start.type == "message_start"
    usage = start.message.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens) == (100, 50)
    assert usage.cache_creation_input_tokens == 25
    assert usage.cache_creation is not None
    assert usage.cache_creation.ephemeral_5m_input_tokens == 20
    assert usage.cache_creation.ephemeral_1h_input_tokens == 5
    assert usage.output_tokens == 1
    assert delta.type == "message_delta"
    assert delta.usage.output_tokens == 40
    assert delta.usage.input_tokens == (100 if shape == "finish_chunk" else None)


@pytest.mark.parametrize(
    ("knobs", "last"),
    [
        pytest.param({}, "response.completed", id="completed"),
        pytest.param({"finish_reason": "length"}, "response.incomplete", id="incomplete"),
        pytest.param({"error_after_chunks": 2}, "response.failed", id="failed"),
    ],
)
async def test_responses_carry_their_usage_in_the_last_event(
    fake_openai: openai.AsyncOpenAI, knobs: dict[str, Any], last: str
) -> None:
    stream = await fake_openai.responses.create(
        model="m",
        input="three words here",
        stream=True,
        metadata=fake(completion_tokens=7, reasoning_tokens=2, **knobs),
    )
    events = [event async for event in stream]

    assert [event.sequence_number for event in events] == list(range(len(events)))
    final: Any = events[-1]
    assert final.type == last
    assert final.response.usage.input_tokens == 3
    assert final.response.usage.output_tokens == 7
    assert final.response.usage.output_tokens_details.reasoning_tokens == 2
