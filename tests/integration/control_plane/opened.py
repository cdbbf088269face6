"""What a test begins with, made by an operator through the API."""

import asyncio
from typing import Any

import httpx
from integration.tables.rows import new_name

Json = dict[str, Any]


async def told(request: Any, status: int = 200) -> Json:
    """Return the body of an answer that must have this status."""
    response: httpx.Response = await request
    assert response.status_code == status, f"{response.status_code} {response.text}"
    body: Json = response.json()
    return body


async def refused(request: Any, status: int, code: str, field: str | None = None) -> str:
    """Return the message of an error that must be this one."""
    error = (await told(request, status))["error"]
    assert (error["code"], error.get("field")) == (code, field), error
    message: str = error["message"]
    return message


async def open_tier(operator: httpx.AsyncClient, **numbers: int) -> str:
    """Make a tier; return its id."""
    tier_id = new_name("tier")
    await told(operator.put(f"/tiers/{tier_id}", json={"rpm": 60, "tpm": 60_000} | numbers), 201)
    return tier_id


async def open_team(operator: httpx.AsyncClient) -> str:
    """Make a team in a tier of its own; return its id."""
    team_id = new_name("team")
    new = {"team_id": team_id, "tier_id": await open_tier(operator)}
    await told(operator.post("/teams", json=new), 201)
    return team_id


async def credit(operator: httpx.AsyncClient, team_id: str, amount: str = "10") -> Json:
    """Credit a team; return the entry."""
    new = {"amount": amount, "reason": "Paid in"}
    return await told(operator.post(f"/teams/{team_id}/credits", json=new), 201)


async def pages(operator: httpx.AsyncClient, path: str, limit: int) -> list[list[Json]]:
    """Return every page of a list."""
    found: list[list[Json]] = []
    cursor: str | None = None
    while cursor is not None or not found:
        query: dict[str, Any] = {"limit": limit} | ({"cursor": cursor} if cursor else {})
        page = await told(operator.get(path, params=query))
        found.append(page["items"])
        cursor = page["next_cursor"]
    return found


async def was_published(operator: httpx.AsyncClient, event_id: str) -> Json:
    """Return the event once the stream has acknowledged it."""
    async with asyncio.timeout(15):
        while (event := await told(operator.get(f"/events/{event_id}")))["published_at"] is None:
            await asyncio.sleep(0.02)
    return event
