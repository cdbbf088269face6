"""A request at each endpoint, with orders to the fake provider."""

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from integration.edge_proxy.world import Team, World

from fake_provider.behaviour import fake

CHAT, COMPLETIONS, EMBEDDINGS = "/v1/chat/completions", "/v1/completions", "/v1/embeddings"
RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"
SAY = [{"role": "user", "content": "three words here"}]
BODIES: Mapping[str, dict[str, Any]] = {
    CHAT: {"model": "plain", "messages": SAY},
    COMPLETIONS: {"model": "plain", "prompt": "three words here"},
    EMBEDDINGS: {"model": "plain", "input": "three words here", "dimensions": 4},
    RESPONSES: {"model": "plain", "input": "three words here"},
    MESSAGES: {"model": "claude", "messages": SAY, "max_tokens": 100},
}
VERSION = {"anthropic-version": "2023-06-01"}

each_endpoint = pytest.mark.parametrize("path", BODIES)
each_stream = pytest.mark.parametrize("path", [CHAT, COMPLETIONS, RESPONSES, MESSAGES])


async def post(
    world: World,
    path: str,
    *,
    sent: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
    **knobs: Any,
) -> tuple[Team, httpx.Response]:
    """Ask at an endpoint as a new team."""
    team = world.team()
    body = BODIES[path] | {"metadata": fake(marker=team.team_id, **knobs)} | dict(more or {})
    return team, await world.http.post(
        path, headers=headers_of(team, path) | dict(sent or {}), json=body
    )


def headers_of(team: Team, path: str) -> dict[str, str]:
    return team.headers | (VERSION if path == MESSAGES else {})


def events(stream: bytes) -> list[Any]:
    return [json.loads(line[6:]) for line in stream.splitlines() if line.startswith(b"data: {")]
