"""Paged lists: every item once, whatever is added meanwhile; cursors are refused elsewhere."""

import base64
import json

import httpx
import pytest
from integration.control_plane.opened import (
    Json,
    credit,
    open_team,
    open_tier,
    pages,
    refused,
    told,
)
from integration.tables.rows import add_record, new_name
from sqlalchemy.ext.asyncio import AsyncEngine


@pytest.fixture(scope="session")
async def lists(operator: httpx.AsyncClient, settlement: AsyncEngine) -> dict[str, str]:
    """Fill every list; return its address by name."""
    team_id = await open_team(operator)
    for _ in range(3):
        await open_team(operator)
        await credit(operator, team_id)
        await told(operator.post(f"/teams/{team_id}/keys", json={}), 201)
        usd = {"input": "1", "output": "1"}
        price = {"provider": "fake", "model": new_name("m"), "usd_per_million": usd}
        await told(operator.post("/prices", json=price), 201)
        await add_record(settlement, team_id)
    return {
        "teams": "/teams",
        "tiers": "/tiers",
        "prices": "/prices",
        "events": "/events",
        "keys": f"/teams/{team_id}/keys",
        "ledger": f"/teams/{team_id}/ledger",
        "records": f"/teams/{team_id}/records",
    }


NAMES = ["teams", "tiers", "prices", "events", "keys", "ledger", "records"]


@pytest.mark.parametrize("name", NAMES)
async def test_small_pages_and_one_large_one_hold_the_same(
    operator: httpx.AsyncClient, lists: dict[str, str], name: str
) -> None:
    large = [item for page in await pages(operator, lists[name], 200) for item in page]
    small = await pages(operator, lists[name], 2)
    assert len(large) >= 3
    assert [item for page in small for item in page] == large
    assert all(len(page) == 2 for page in small[:-1])


@pytest.mark.parametrize("name", NAMES)
async def test_what_is_added_meanwhile_doubles_and_hides_nothing(
    operator: httpx.AsyncClient, lists: dict[str, str], name: str, settlement: AsyncEngine
) -> None:
    path = lists[name]
    before = [item for page in await pages(operator, path, 200) for item in page]
    first = await told(operator.get(path, params={"limit": 1}))
    await add_one_of_each(operator, lists, settlement)
    rest, cursor = first["items"], first["next_cursor"]
    while cursor is not None:
        page = await told(operator.get(path, params={"limit": 200, "cursor": cursor}))
        rest, cursor = rest + page["items"], page["next_cursor"]
    seen = [json.dumps(item) for item in rest]
    assert len(set(seen)) == len(seen)
    assert {json.dumps(item) for item in before} <= set(seen)


async def add_one_of_each(
    operator: httpx.AsyncClient, lists: dict[str, str], settlement: AsyncEngine
) -> None:
    team_id = lists["keys"].split("/")[2]
    await open_team(operator)
    await credit(operator, team_id)
    await told(operator.post(lists["keys"], json={}), 201)
    price = {
        "provider": "fake",
        "model": new_name("m"),
        "usd_per_million": {"input": "1", "output": "1"},
    }
    await told(operator.post("/prices", json=price), 201)
    await add_record(settlement, team_id)


def cursor_of(*parts: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        pytest.param("nonsense", id="nonsense"),
        pytest.param("====", id="padding alone"),
        pytest.param("ä", id="not ASCII"),
        pytest.param(cursor_of("events", 7), id="another list's"),
        pytest.param(cursor_of("teams", 7), id="a number for a name"),
        pytest.param(cursor_of("teams", "a", "b"), id="too long"),
        pytest.param(cursor_of("teams"), id="too short"),
        pytest.param(cursor_of("teams", "a\x00"), id="NUL inside"),
        pytest.param(cursor_of("teams", "\ud800"), id="a lone surrogate inside"),
        pytest.param(base64.urlsafe_b64encode(b"7").decode(), id="JSON, but no list"),
        pytest.param(base64.urlsafe_b64encode(b"\xff").decode(), id="not JSON"),
    ],
)
async def test_a_cursor_of_another_kind_is_refused(
    operator: httpx.AsyncClient, cursor: str
) -> None:
    await refused(operator.get("/teams", params={"cursor": cursor}), 422, "invalid_value", "cursor")


async def test_numbers_in_a_cursor_are_bounded(operator: httpx.AsyncClient) -> None:
    for number in (2**63, True, 1.5):
        get = operator.get("/events", params={"cursor": cursor_of("events", number)})
        await refused(get, 422, "invalid_value", "cursor")
    team_id = await open_team(operator)
    far = cursor_of("keys", 2**62, "a")
    get = operator.get(f"/teams/{team_id}/keys", params={"cursor": far})
    await refused(get, 422, "invalid_value", "cursor")


@pytest.mark.parametrize(
    ("query", "code", "field"),
    [
        ({"limit": 0}, "invalid_value", "limit"),
        ({"limit": 201}, "invalid_value", "limit"),
        ({"limit": "many"}, "invalid_value", "limit"),
        ({"page": 2}, "unknown_field", "page"),
        ({"cursor": "x" * 1_001}, "invalid_value", "cursor"),
    ],
)
async def test_impossible_pages_are_refused(
    operator: httpx.AsyncClient, query: Json, code: str, field: str
) -> None:
    await refused(operator.get("/tiers", params=query), 422, code, field)


async def test_the_default_page_is_bounded(operator: httpx.AsyncClient) -> None:
    for _ in range(51):
        await open_tier(operator)
    assert len((await told(operator.get("/tiers")))["items"]) == 50
