"""What the official OpenAI client sees of the APIs besides chat, without any orders.

The same suite runs against a real provider: set QUOTAGATE_CONFORMANCE_OPENAI_KEY (and, where they
differ, _BASE_URL, _MODEL, _COMPLETION_MODEL, _EMBEDDING_MODEL). The client checks every answer
against its own types.
"""

import base64
import json
import struct
from typing import Any

import httpx
import openai
import pytest
from integration.fake_provider.subject import Subject

_WEATHER: Any = {
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


async def test_models(openai_client: openai.AsyncOpenAI, openai_subject: Subject) -> None:
    listed = [model.id async for model in openai_client.models.list()]

    assert openai_subject.chat_model in listed
    assert (await openai_client.models.retrieve(openai_subject.chat_model)).object == "model"


async def test_completion(openai_client: openai.AsyncOpenAI, openai_subject: Subject) -> None:
    answer = await openai_client.completions.create(
        model=openai_subject.completion_model, prompt="Once upon a time"
    )

    assert answer.id.startswith("cmpl-")
    assert answer.choices[0].text
    assert answer.choices[0].finish_reason in {"stop", "length"}
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == 4


async def test_completion_stream(
    lenient_client: openai.AsyncOpenAI, openai_subject: Subject
) -> None:
    stream = await lenient_client.completions.create(
        model=openai_subject.completion_model,
        prompt="Once upon a time",
        stream=True,
        stream_options={"include_usage": True},
    )
    *content, last = [chunk async for chunk in stream]

    assert "".join(chunk.choices[0].text for chunk in content)
    reasons: list[Any] = [chunk.choices[0].finish_reason for chunk in content]
    assert reasons[:-1] == [None] * (len(content) - 1)
    assert reasons[-1] in {"stop", "length"}
    assert last.choices == []
    assert last.usage is not None


@pytest.mark.parametrize(
    ("given", "count"),
    [
        pytest.param("one text", 1, id="a text"),
        pytest.param(["a text", "another"], 2, id="texts"),
        pytest.param([15339, 1917], 1, id="tokens"),
        pytest.param([[15339], [1917, 0]], 2, id="lists of tokens"),
    ],
)
async def test_embeddings(
    openai_client: openai.AsyncOpenAI, openai_subject: Subject, given: Any, count: int
) -> None:
    answer = await openai_client.embeddings.create(
        model=openai_subject.embedding_model, input=given, dimensions=64, encoding_format="float"
    )

    assert [one.index for one in answer.data] == list(range(count))
    assert all(len(one.embedding) == 64 for one in answer.data)
    assert answer.usage.prompt_tokens == answer.usage.total_tokens >= count


async def test_embeddings_as_the_client_asks_for_them_by_itself(
    lenient_client: openai.AsyncOpenAI, openai_subject: Subject
) -> None:
    answer = await lenient_client.embeddings.create(
        model=openai_subject.embedding_model, input="a text"
    )

    assert len(answer.data[0].embedding) == 1536


async def test_embeddings_in_both_encodings_are_the_same(openai_subject: Subject) -> None:
    async def embed(client: httpx.AsyncClient, encoding: str) -> Any:
        asked = {
            "model": openai_subject.embedding_model,
            "input": "text",
            "dimensions": 16,
            "encoding_format": encoding,
        }
        headers = {"authorization": f"Bearer {openai_subject.api_key}"}
        answer = await client.post("/v1/embeddings", json=asked, headers=headers)
        return answer.json()["data"][0]["embedding"]

    async with httpx.AsyncClient(base_url=openai_subject.base_url) as client:
        floats = await embed(client, "float")
        packed = base64.b64decode(await embed(client, "base64"))

    assert struct.unpack("<16f", packed) == pytest.approx(floats, abs=1e-3)


async def test_response_and_fetching_it_again(
    openai_client: openai.AsyncOpenAI, openai_subject: Subject
) -> None:
    answer = await openai_client.responses.create(
        model=openai_subject.chat_model, input="Say hello in five words."
    )

    assert answer.id.startswith("resp_")
    assert answer.status == "completed"
    assert answer.output_text
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    again = await openai_client.responses.retrieve(answer.id)
    assert again.output_text == answer.output_text


async def test_response_that_was_not_to_be_stored(
    openai_client: openai.AsyncOpenAI, openai_subject: Subject
) -> None:
    answer = await openai_client.responses.create(
        model=openai_subject.chat_model, input=[{"role": "user", "content": "Hi"}], store=False
    )

    with pytest.raises(openai.NotFoundError):
        await openai_client.responses.retrieve(answer.id)


async def test_response_stream(openai_client: openai.AsyncOpenAI, openai_subject: Subject) -> None:
    async with openai_client.responses.stream(
        model=openai_subject.chat_model, input="Say hello in five words."
    ) as stream:
        events = [event async for event in stream]
        final = await stream.get_final_response()

    names = [event.type for event in events]
    assert names[:2] == ["response.created", "response.in_progress"]
    assert names[-1] == "response.completed"
    assert "response.output_text.delta" in names
    numbers = [event.sequence_number for event in events]
    assert numbers == list(range(len(events)))
    assert final.output_text
    assert final.usage is not None


async def test_response_stream_with_a_forced_tool_call(
    openai_client: openai.AsyncOpenAI, openai_subject: Subject
) -> None:
    tool: Any = {"type": "function", **_WEATHER["function"]}
    async with openai_client.responses.stream(
        model=openai_subject.chat_model, input="Weather?", tools=[tool], tool_choice="required"
    ) as stream:
        final = await stream.get_final_response()

    calls = [item for item in final.output if item.type == "function_call"]
    assert calls[0].name == "get_weather"
    assert "city" in json.loads(calls[0].arguments)


async def test_response_that_reaches_its_limit(
    openai_client: openai.AsyncOpenAI, openai_subject: Subject
) -> None:
    answer = await openai_client.responses.create(
        model=openai_subject.chat_model, input="Tell a long story.", max_output_tokens=16
    )

    assert answer.usage is not None
    assert answer.usage.output_tokens <= 16
