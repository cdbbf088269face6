"""Every endpoint with its own official client: the answer, the record, the charge."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from e2e.operator import Customer, Operator

from fake_provider.behaviour import fake

MILLION = 10**6
SAY: Any = [{"role": "user", "content": "Say hello."}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION: dict[str, Any] = {
    "name": "get_weather",
    "description": "The weather.",
    "parameters": PARAMETERS,
}
CHAT_TOOLS: Any = [{"type": "function", "function": FUNCTION}]
RESPONSE_TOOLS: Any = [{"type": "function", "strict": True, **FUNCTION}]
MESSAGE_TOOLS: Any = [{"name": "get_weather", "input_schema": PARAMETERS}]
ARGUMENTS = '{"city": "Zürich", "days": 3}'

Orders = dict[str, str]
OPENAI_ORDERS = {"prompt_tokens": 1000, "cached_tokens": 400, "completion_tokens": 50}
OPENAI_USAGE = {"input": 600, "cache_read": 400, "output": 50}
ANTHROPIC_ORDERS = OPENAI_ORDERS | {"cache_write_tokens": 30, "cache_write_1h_tokens": 20}
ANTHROPIC_USAGE = {
    "input": 1000,
    "cache_read": 400,
    "cache_write_5m": 30,
    "cache_write_1h": 20,
    "output": 50,
}


async def chat(team: Customer, orders: Orders) -> str:
    async with team.openai() as client:
        answer = await client.chat.completions.create(
            model="gpt-4o-mini", messages=SAY, metadata=orders
        )
    assert answer.usage is not None
    assert answer.usage.total_tokens == 1050
    return answer.choices[0].message.content or ""


async def chat_stream(team: Customer, orders: Orders) -> str:
    async with team.openai() as client:
        stream = await client.chat.completions.create(
            model="gpt-4o-mini", messages=SAY, metadata=orders, stream=True
        )
        chunks = [chunk async for chunk in stream]
    assert all(chunk.usage is None and "usage" not in chunk.to_dict() for chunk in chunks)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


async def chat_tools(team: Customer, orders: Orders) -> str:
    async with team.openai() as client:
        answer = await client.chat.completions.create(
            model="gpt-4o-mini",
            messages=SAY,
            tools=CHAT_TOOLS,
            tool_choice="required",
            metadata=orders,
        )
    (call,) = answer.choices[0].message.tool_calls or []
    assert call.type == "function"
    return call.function.arguments


async def chat_tools_stream(team: Customer, orders: Orders) -> str:
    async with (
        team.openai() as client,
        client.chat.completions.stream(
            model="gpt-4o-mini",
            messages=SAY,
            tools=CHAT_TOOLS,
            tool_choice="required",
            metadata=orders,
        ) as stream,
    ):
        answer = await stream.get_final_completion()
    (call,) = answer.choices[0].message.tool_calls or []
    return call.function.arguments


async def completion(team: Customer, orders: Orders) -> str:
    async with team.openai() as client:
        answer = await client.completions.create(
            model="gpt-3.5-turbo-instruct", prompt="Say", extra_body={"metadata": orders}
        )
    return answer.choices[0].text


async def completion_stream(team: Customer, orders: Orders) -> str:
    async with team.openai() as client:
        stream = await client.completions.create(
            model="gpt-3.5-turbo-instruct",
            prompt="Say",
            stream=True,
            extra_body={"metadata": orders},
        )
        return "".join([chunk.choices[0].text async for chunk in stream])


async def embeddings(team: Customer, orders: Orders) -> str:
    async with team.openai() as client:
        answer = await client.embeddings.create(
            model="text-embedding-3-small",
            input=["one", "two"],
            dimensions=8,
            extra_body={"metadata": orders},
        )
    assert [len(one.embedding) for one in answer.data] == [8, 8]
    return "embeddings"


async def response(team: Customer, orders: Orders) -> str:
    async with team.openai() as client:
        answer = await client.responses.create(model="gpt-4o", input="Say", metadata=orders)
    return answer.output_text


async def response_stream(team: Customer, orders: Orders) -> str:
    async with (
        team.openai() as client,
        client.responses.stream(model="gpt-4o", input="Say", metadata=orders) as stream,
    ):
        answer = await stream.get_final_response()
    assert answer.usage is not None
    return answer.output_text


async def response_tools_stream(team: Customer, orders: Orders) -> str:
    async with (
        team.openai() as client,
        client.responses.stream(
            model="gpt-4o",
            input="Say",
            tools=RESPONSE_TOOLS,
            tool_choice="required",
            metadata=orders,
        ) as stream,
    ):
        answer = await stream.get_final_response()
    (call,) = answer.output
    assert call.type == "function_call"
    return call.arguments


async def message(team: Customer, orders: Orders) -> str:
    async with team.anthropic() as client:
        answer = await client.messages.create(
            model="claude-haiku-4-5",
            max_tokens=100,
            messages=SAY,
            extra_body={"metadata": orders},
        )
    assert answer._request_id
    assert answer.content[0].type == "text"
    return answer.content[0].text


async def message_stream(team: Customer, orders: Orders) -> str:
    async with (
        team.anthropic() as client,
        client.messages.stream(
            model="claude-haiku-4-5",
            max_tokens=100,
            messages=SAY,
            extra_body={"metadata": orders},
        ) as stream,
    ):
        answer = await stream.get_final_message()
    assert answer.usage.output_tokens == 50
    assert answer.content[0].type == "text"
    return answer.content[0].text


async def message_tools_stream(team: Customer, orders: Orders) -> str:
    async with (
        team.anthropic() as client,
        client.messages.stream(
            model="claude-haiku-4-5",
            max_tokens=100,
            messages=SAY,
            tools=MESSAGE_TOOLS,
            tool_choice={"type": "any"},
            extra_body={"metadata": orders},
        ) as stream,
    ):
        answer = await stream.get_final_message()
    assert answer.content[0].type == "tool_use"
    assert answer.content[0].input == {"city": "Zürich", "days": 3}
    return ARGUMENTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A way to call, and what comes of it."""

    make: Callable[[Customer, Orders], Awaitable[str]]
    endpoint: str
    model: str
    provider: str = "fake"
    orders: Mapping[str, int] = field(default_factory=lambda: OPENAI_ORDERS)
    usage: Mapping[str, int] = field(default_factory=lambda: OPENAI_USAGE)


def _message(make: Callable[[Customer, Orders], Awaitable[str]]) -> Call:
    return Call(
        make=make,
        endpoint="/v1/messages",
        model="claude-haiku-4-5",
        provider="fake-anthropic",
        orders=ANTHROPIC_ORDERS,
        usage=ANTHROPIC_USAGE,
    )


INSTRUCT = "gpt-3.5-turbo-instruct"
CALLS = [
    *(
        Call(make=make, endpoint="/v1/chat/completions", model="gpt-4o-mini")
        for make in (chat, chat_stream, chat_tools, chat_tools_stream)
    ),
    *(
        Call(make=make, endpoint="/v1/completions", model=INSTRUCT)
        for make in (completion, completion_stream)
    ),
    Call(
        make=embeddings,
        endpoint="/v1/embeddings",
        model="text-embedding-3-small",
        usage={"input": 1000},
    ),
    *(
        Call(make=make, endpoint="/v1/responses", model="gpt-4o")
        for make in (response, response_stream, response_tools_stream)
    ),
    *(_message(make) for make in (message, message_stream, message_tools_stream)),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.make.__name__)
async def test_an_answer_its_record_and_its_charge(operator: Operator, call: Call) -> None:
    team = await operator.open_team()
    said = await call.make(team, fake(**dict[str, Any](call.orders)))
    if "tools" in call.make.__name__:
        assert said == ARGUMENTS
    else:
        assert said in ("Hello from the fake provider.", "embeddings")

    (record,) = await operator.settled(team.team_id)
    assert (record["endpoint"], record["provider"]) == (call.endpoint, call.provider)
    assert (record["model_asked"], record["model_served"]) == (call.model, call.model)
    assert (record["outcome"], record["state"]) == ("succeeded", "SETTLED")
    assert record["streaming"] is ("stream" in call.make.__name__)
    assert {name: count for name, count in record["usage"].items() if count} == call.usage
    price = await operator.price(call.model, call.provider)
    charge = sum((price[name] * count for name, count in call.usage.items()), Decimal(0)) / MILLION
    assert Decimal(record["charge"]["amount"]) == charge
    await operator.cached_balance_becomes(team.team_id, Decimal(10) - charge)


async def test_a_response_fetched_again_is_one_record_and_one_charge(operator: Operator) -> None:
    team = await operator.open_team()
    async with team.openai() as client:
        made = await client.responses.create(model="gpt-4o", input="Say")
        again = await client.responses.retrieve(made.id)
    assert (again.id, again.output_text) == (made.id, made.output_text)
    (record,) = await operator.settled(team.team_id)
    await operator.cached_balance_becomes(
        team.team_id, Decimal(10) - Decimal(record["charge"]["amount"])
    )
