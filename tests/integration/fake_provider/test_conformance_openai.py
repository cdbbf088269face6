"""What the official OpenAI client sees without any orders.

The same suite runs against a real provider: set QUOTAGATE_CONFORMANCE_OPENAI_KEY (and, where they
differ, _BASE_URL, _MODEL, _COMPLETION_MODEL, _EMBEDDING_MODEL). The client checks every answer
against its own types.
"""

import json
from typing import Any

import httpx
import openai
import pytest
from integration.fake_provider.subject import Subject
from openai.types.chat import ChatCompletionChunk, ChatCompletionToolParam

_QUESTION: list[Any] = [
    {"role": "system", "content": "You are terse."},
    {"role": "user", "content": [{"type": "text", "text": "Say hello in five words."}]},
]
_WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


async def test_chat(openai_client: openai.AsyncOpenAI, openai_subject: Subject) -> None:
    answer = await openai_client.chat.completions.create(
        model=openai_subject.chat_model, messages=_QUESTION
    )

    assert answer.id.startswith("chatcmpl-")
    assert answer._request_id
    assert answer.model.startswith(openai_subject.chat_model)
    assert [choice.finish_reason for choice in answer.choices] == ["stop"]
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 0
    assert answer.usage.completion_tokens > 0
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens == 0
    assert answer.usage.completion_tokens_details is not None
    assert answer.usage.completion_tokens_details.reasoning_tokens == 0


async def _chunks(
    client: openai.AsyncOpenAI, model: str, **options: Any
) -> list[ChatCompletionChunk]:
    stream = await client.chat.completions.create(
        model=model, messages=_QUESTION, stream=True, **options
    )
    return [chunk async for chunk in stream]


async def test_chat_stream(openai_client: openai.AsyncOpenAI, openai_subject: Subject) -> None:
    chunks = await _chunks(openai_client, openai_subject.chat_model)

    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert all(chunk.usage is None for chunk in chunks)
    reasons = [chunk.choices[0].finish_reason for chunk in chunks]
    assert reasons == [None] * (len(chunks) - 1) + ["stop"]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="not asked"),
        pytest.param({"stream_options": {"include_usage": False}}, id="asked not to"),
        pytest.param({"stream_options": {}}, id="options without a word on it"),
    ],
)
async def test_stream_without_usage(
    openai_client: openai.AsyncOpenAI, openai_subject: Subject, options: dict[str, Any]
) -> None:
    chunks = await _chunks(openai_client, openai_subject.chat_model, **options)

    assert all(chunk.choices and chunk.usage is None for chunk in chunks)


async def test_stream_with_usage_has_it_once_on_a_last_chunk_without_choices(
    openai_client: openai.AsyncOpenAI, openai_subject: Subject
) -> None:
    chunks = await _chunks(
        openai_client, openai_subject.chat_model, stream_options={"include_usage": True}
    )

    *content, last = chunks
    assert all(chunk.choices and chunk.usage is None for chunk in content)
    assert all("usage" in chunk.model_fields_set for chunk in content)
    assert last.choices == []
    assert last.usage is not None
    assert last.usage.total_tokens == last.usage.prompt_tokens + last.usage.completion_tokens


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
async def test_chat_ends_at_the_limit_of_the_request(
    openai_client: openai.AsyncOpenAI, openai_subject: Subject, limit: str
) -> None:
    options: dict[str, Any] = {limit: 2}
    answer = await openai_client.chat.completions.create(
        model=openai_subject.chat_model, messages=_QUESTION, **options
    )

    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 2


async def test_chat_with_two_choices(
    openai_client: openai.AsyncOpenAI, openai_subject: Subject
) -> None:
    answer = await openai_client.chat.completions.create(
        model=openai_subject.chat_model, messages=_QUESTION, n=2
    )

    assert [choice.index for choice in answer.choices] == [0, 1]


async def test_forced_tool_call(openai_client: openai.AsyncOpenAI, openai_subject: Subject) -> None:
    answer = await openai_client.chat.completions.create(
        model=openai_subject.chat_model,
        messages=_QUESTION,
        tools=[_WEATHER],
        tool_choice="required",
    )

    message = answer.choices[0].message
    assert answer.choices[0].finish_reason == "tool_calls"
    assert message.content is None
    assert message.tool_calls
    call = message.tool_calls[0]
    assert call.type == "function"
    assert call.function.name == "get_weather"
    assert "city" in json.loads(call.function.arguments)


async def test_forced_tool_call_in_a_stream(
    openai_client: openai.AsyncOpenAI, openai_subject: Subject
) -> None:
    chunks = await _chunks(
        openai_client, openai_subject.chat_model, tools=[_WEATHER], tool_choice="required"
    )

    parts = [part for chunk in chunks for part in chunk.choices[0].delta.tool_calls or ()]
    assert parts[0].id
    assert parts[0].function is not None
    assert parts[0].function.name == "get_weather"
    arguments = [part.function.arguments or "" for part in parts if part.function]
    assert "city" in json.loads("".join(arguments))
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


async def test_wrong_key(openai_subject: Subject) -> None:
    async with openai.AsyncOpenAI(
        api_key="wrong", base_url=f"{openai_subject.base_url}/v1", max_retries=0
    ) as client:
        with pytest.raises(openai.AuthenticationError) as refused:
            await client.chat.completions.create(
                model=openai_subject.chat_model, messages=_QUESTION
            )

    assert refused.value.code == "invalid_api_key"
    assert refused.value.type == "invalid_request_error"
    assert refused.value.request_id


async def test_unknown_model(openai_client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        await openai_client.chat.completions.create(model="no-such-model", messages=_QUESTION)

    assert refused.value.code == "model_not_found"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'{"model": "gpt', id="cut off"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b'{"messages": []}', id="no model"),
        pytest.param(b'{"model": "gpt-4o-mini"}', id="no messages"),
        pytest.param(b'{"model": "gpt-4o-mini", "messages": "hello"}', id="messages is a string"),
        pytest.param(b'{"model": "gpt-4o-mini\xff", "messages": []}', id="no UTF-8"),
    ],
)
async def test_bad_body(openai_subject: Subject, body: bytes) -> None:
    async with httpx.AsyncClient(base_url=openai_subject.base_url) as client:
        answer = await client.post(
            "/v1/chat/completions",
            content=body,
            headers={
                "authorization": f"Bearer {openai_subject.api_key}",
                "content-type": "application/json",
            },
        )

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"]
    assert set(error) == {"message", "type", "param", "code"}
