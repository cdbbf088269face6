"""What the official Anthropic client sees without any orders.

The same suite runs against the real one: set QUOTAGATE_CONFORMANCE_ANTHROPIC_KEY and _MODEL.
"""

from typing import Any

import anthropic
import httpx
import pytest
from integration.fake_provider.subject import Subject

_QUESTION: list[Any] = [
    {"role": "user", "content": [{"type": "text", "text": "Say hello in five words."}]}
]
_WEATHER: Any = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}


async def test_message(
    anthropic_client: anthropic.AsyncAnthropic, anthropic_subject: Subject
) -> None:
    answer = await anthropic_client.messages.create(
        model=anthropic_subject.chat_model,
        max_tokens=100,
        system="You are terse.",
        messages=_QUESTION,
    )

    assert answer.id.startswith("msg_")
    assert answer._request_id
    assert answer.stop_reason == "end_turn"
    assert answer.content[0].type == "text"
    assert answer.content[0].text
    assert answer.usage.input_tokens > 0
    assert answer.usage.output_tokens > 0
    assert answer.usage.cache_read_input_tokens == 0
    assert answer.usage.cache_creation_input_tokens == 0


async def test_message_stream(
    anthropic_client: anthropic.AsyncAnthropic, anthropic_subject: Subject
) -> None:
    stream = await anthropic_client.messages.create(
        model=anthropic_subject.chat_model, max_tokens=100, messages=_QUESTION, stream=True
    )
    events = [event async for event in stream]

    names = [event.type for event in events]
    deltas = names.count("content_block_delta")
    assert names == [
        "message_start",
        "content_block_start",
        *["content_block_delta"] * deltas,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    start, delta = events[0], events[-2]
    assert start.type == "message_start"
    assert start.message.usage.input_tokens > 0
    assert delta.type == "message_delta"
    assert delta.usage.output_tokens >= start.message.usage.output_tokens


async def test_the_stream_adds_up_to_a_message(
    anthropic_client: anthropic.AsyncAnthropic, anthropic_subject: Subject
) -> None:
    async with anthropic_client.messages.stream(
        model=anthropic_subject.chat_model, max_tokens=100, messages=_QUESTION
    ) as stream:
        message = await stream.get_final_message()

    assert message.content[0].type == "text"
    assert message.content[0].text
    assert message.stop_reason == "end_turn"
    assert message.usage.input_tokens > 0
    assert message.usage.output_tokens > 1


async def test_message_ends_at_the_limit_of_the_request(
    anthropic_client: anthropic.AsyncAnthropic, anthropic_subject: Subject
) -> None:
    answer = await anthropic_client.messages.create(
        model=anthropic_subject.chat_model, max_tokens=2, messages=_QUESTION
    )

    assert answer.stop_reason == "max_tokens"
    assert answer.usage.output_tokens == 2


@pytest.mark.parametrize("kind", ["whole", "stream"])
async def test_forced_tool_use(
    anthropic_client: anthropic.AsyncAnthropic, anthropic_subject: Subject, kind: str
) -> None:
    asked: dict[str, Any] = {
        "model": anthropic_subject.chat_model,
        "max_tokens": 100,
        "messages": _QUESTION,
        "tools": [_WEATHER],
        "tool_choice": {"type": "tool", "name": "get_weather"},
    }
    if kind == "whole":
        answer = await anthropic_client.messages.create(**asked)
    else:
        async with anthropic_client.messages.stream(**asked) as stream:
            answer = await stream.get_final_message()

    block = answer.content[-1]
    assert block.type == "tool_use"
    assert block.name == "get_weather"
    assert block.input["city"]
    assert answer.stop_reason == "tool_use"


async def test_wrong_key(anthropic_subject: Subject) -> None:
    async with anthropic.AsyncAnthropic(
        api_key="wrong", base_url=anthropic_subject.base_url, max_retries=0
    ) as client:
        with pytest.raises(anthropic.AuthenticationError) as refused:
            await client.messages.create(
                model=anthropic_subject.chat_model, max_tokens=10, messages=_QUESTION
            )

    assert refused.value.type == "authentication_error"
    assert refused.value.request_id


async def test_unknown_model(anthropic_client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as refused:
        await anthropic_client.messages.create(
            model="no-such-model", max_tokens=10, messages=_QUESTION
        )

    assert refused.value.type == "not_found_error"


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        pytest.param({}, b"{}", id="nothing"),
        pytest.param({}, b'{"model": "m", "messages": []}', id="no max_tokens"),
        pytest.param(
            {"anthropic-version": ""},
            b'{"model": "m", "max_tokens": 5, "messages": []}',
            id="no version header",
        ),
    ],
)
async def test_bad_request(
    anthropic_subject: Subject, headers: dict[str, str], body: bytes
) -> None:
    sent = {
        "x-api-key": anthropic_subject.api_key,
        "content-type": "application/json",
        "anthropic-version": "2023-06-01",
        **headers,
    }
    sent = {name: value for name, value in sent.items() if value}
    async with httpx.AsyncClient(base_url=anthropic_subject.base_url) as client:
        answer = await client.post("/v1/messages", content=body, headers=sent)

    assert answer.status_code == 400
    assert answer.json()["type"] == "error"
    assert answer.json()["error"]["type"] == "invalid_request_error"


async def test_models(
    anthropic_client: anthropic.AsyncAnthropic, anthropic_subject: Subject
) -> None:
    listed = [model.id async for model in anthropic_client.models.list()]

    assert anthropic_subject.chat_model in listed
