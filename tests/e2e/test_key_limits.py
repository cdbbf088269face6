"""Limits of a single API key, set and changed while its clients call."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from e2e.operator import MODEL, Customer, Operator

from fake_provider.behaviour import fake
from quotagate.stack import Stack

FAST = {"rpm": 60_000_000, "tpm": 10**9}


@pytest.fixture
async def http(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=stack.url("edge-proxy"), timeout=60) as client:
        yield client


async def ask(http: httpx.AsyncClient, team: Customer, **usage: Any) -> httpx.Response:
    body: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "Hello."}]}
    if usage:
        body["metadata"] = fake(**usage)
    headers = {"authorization": f"Bearer {team.key}"}
    return await http.post("/v1/chat/completions", json=body, headers=headers)


async def published(operator: Operator, change: dict[str, Any]) -> None:
    """Return once everyone was told of a change."""
    while (await operator.get(f"/events/{change['event_id']}"))["published_at"] is None:
        pass


async def test_a_key_has_limits_of_its_own_beside_its_teams(
    operator: Operator, http: httpx.AsyncClient
) -> None:
    tier_id = await operator.open_tier(**FAST)
    team = await operator.open_team(tier_id, limits={"tpm": 600})
    first = await ask(http, team, prompt_tokens=600, completion_tokens=0)
    assert first.status_code == 200
    refused = await ask(http, team)
    assert refused.status_code == 429
    assert refused.headers["x-ratelimit-reason"] == "key_tokens"
    details = refused.json()["error"]["details"]
    assert (details["scope"], details["limit"]) == ("key", 600)
    # Another key of the team isn't concerned.
    made = await operator.send("POST", f"/teams/{team.team_id}/keys", {"name": "other"})
    other = Customer(team.team_id, made["key_id"], made["key"], team.edge_url)
    assert (await ask(http, other)).status_code == 200


async def test_a_change_reaches_the_edge_and_takes_back_what_it_gave(
    operator: Operator, http: httpx.AsyncClient
) -> None:
    team = await operator.open_team(await operator.open_tier(**FAST))
    this = f"/keys/{team.key_id}"
    for _ in range(3):
        assert (await ask(http, team)).status_code == 200

    await published(operator, await operator.send("PATCH", this, {"limits": {"rpm": 1}}))
    statuses = [(await ask(http, team)).status_code for _ in range(20)]
    assert set(statuses) == {200, 429}
    # Once refused, refused: the edge went on with the old facts for moments only.
    assert statuses == sorted(statuses)
    told = await operator.get(f"/teams/{team.team_id}/limits", key_id=team.key_id, model=MODEL)
    assert told["decides"] == "key_requests"

    await published(operator, await operator.send("PATCH", this, {"limits": None}))
    while (await ask(http, team)).status_code != 200:
        pass  # the edge hears of it within moments

    narrow = await operator.send("PATCH", this, {"allowed_models": ["another"]})
    await published(operator, narrow)
    while (answer := await ask(http, team)).status_code == 200:
        pass
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "model_not_allowed")
