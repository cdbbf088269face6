"""Asks the fake provider for a chat completion with a plain HTTP client."""

from typing import Any

import httpx

from fake_provider.behaviour import fake

CHAT = "/v1/chat/completions"
MESSAGES: list[Any] = [{"role": "user", "content": "three words here"}]


def asked(*, stream: bool = False, **knobs: Any) -> dict[str, Any]:
    """Return a request that gives these orders."""
    return {"model": "m", "messages": MESSAGES, "stream": stream, "metadata": fake(**knobs)}


async def post(http: httpx.AsyncClient, **more: Any) -> httpx.Response:
    """Ask with these members on top of model and messages."""
    return await http.post(CHAT, json={"model": "m", "messages": MESSAGES, **more})


async def stream_of(http: httpx.AsyncClient, *, with_usage: bool = True, **knobs: Any) -> bytes:
    """Return a whole stream."""
    options = {"stream_options": {"include_usage": True}} if with_usage else {}
    answer = await post(http, stream=True, metadata=fake(**knobs), **options)
    assert answer.status_code == httpx.codes.OK
    return answer.content
