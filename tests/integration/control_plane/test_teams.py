"""Teams: created with an account, given a tier."""

import httpx
import pytest
from integration.control_plane.opened import Json, open_team, open_tier, refused, told
from integration.tables.rows import new_name


async def test_a_team_is_told_as_it_was_created(operator: httpx.AsyncClient) -> None:
    tier_id, team_id = await open_tier(operator), new_name("team")
    new = {"team_id": team_id, "name": "Équipe 7", "tier_id": tier_id}
    made = await told(operator.post("/teams", json=new), 201)
    assert made | new == made
    assert made["tier_version"] == 1
    assert await told(operator.get(f"/teams/{team_id}")) == made


async def test_its_account_opens_with_it(operator: httpx.AsyncClient) -> None:
    account = await told(operator.get(f"/teams/{await open_team(operator)}/account"))
    assert (account["balance"], account["version"]) == ("0", 0)


async def test_an_id_is_chosen_where_none_is_given(operator: httpx.AsyncClient) -> None:
    new = {"tier_id": await open_tier(operator)}
    first, second = [await told(operator.post("/teams", json=new), 201) for _ in range(2)]
    assert first["team_id"] != second["team_id"]
    assert first["name"] == first["team_id"]


async def test_a_team_is_created_once(operator: httpx.AsyncClient) -> None:
    team_id = await open_team(operator)
    before = await told(operator.get(f"/teams/{team_id}"))
    new = {"team_id": team_id, "name": "Another", "tier_id": await open_tier(operator)}
    await refused(operator.post("/teams", json=new), 409, "team_exists", "team_id")
    assert await told(operator.get(f"/teams/{team_id}")) == before


@pytest.mark.parametrize(
    ("changed", "code", "field"),
    [
        pytest.param({"team_id": "a{b}"}, "invalid_value", "team_id", id="braces move a hash slot"),
        pytest.param({"team_id": "a.b"}, "invalid_value", "team_id", id="a dot splits a subject"),
        pytest.param({"team_id": "a\n"}, "invalid_value", "team_id", id="a line break at the end"),
        pytest.param({"team_id": ""}, "invalid_value", "team_id", id="an empty id"),
        pytest.param(
            {"team_id": "x" * 65}, "invalid_value", "team_id", id="an id of 65 characters"
        ),
        pytest.param({"team_id": 7}, "invalid_value", "team_id", id="a number as id"),
        pytest.param({"name": ""}, "invalid_value", "name", id="an empty name"),
        pytest.param({"name": "a\x00b"}, "invalid_value", "name", id="NUL in the name"),
        pytest.param({"name": "x" * 201}, "invalid_value", "name", id="a name of 201 characters"),
        pytest.param({"tier_id": "nowhere"}, "tier_not_found", "tier_id", id="a tier that isn't"),
        pytest.param({"tier_id": None}, "invalid_value", "tier_id", id="no tier"),
        pytest.param({"balance": "5"}, "unknown_field", "balance", id="a field there isn't"),
    ],
)
async def test_impossible_teams_are_refused(
    operator: httpx.AsyncClient, changed: Json, code: str, field: str
) -> None:
    new = {"team_id": new_name("team"), "name": "A", "tier_id": await open_tier(operator)}
    message = await refused(operator.post("/teams", json=new | changed), 422, code, field)
    assert field in message


async def test_a_lone_surrogate_is_refused(operator: httpx.AsyncClient) -> None:
    body = '{"name": "\\ud800", "tier_id": "t"}'
    request = operator.post("/teams", content=body, headers={"Content-Type": "application/json"})
    await refused(request, 422, "invalid_value", "name")


async def test_a_tier_is_changed_once(operator: httpx.AsyncClient) -> None:
    team_id, tier_id = await open_team(operator), await open_tier(operator)
    first = await told(operator.put(f"/teams/{team_id}/tier", json={"tier_id": tier_id}))
    assert (first["tier_id"], first["tier_version"]) == (tier_id, 2)
    assert first["event_id"] is not None
    again = await told(operator.put(f"/teams/{team_id}/tier", json={"tier_id": tier_id}))
    assert (again["tier_version"], again["event_id"]) == (2, None)


async def test_a_tier_that_is_not_there_cannot_be_given(operator: httpx.AsyncClient) -> None:
    team_id = await open_team(operator)
    put = operator.put(f"/teams/{team_id}/tier", json={"tier_id": "nowhere"})
    await refused(put, 422, "tier_not_found", "tier_id")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("PUT", "/tier", None),
        ("GET", "/keys", None),
        ("POST", "/keys", {}),
        ("GET", "/account", None),
        ("GET", "/ledger", None),
        ("POST", "/credits", {"amount": "1", "reason": "r"}),
        ("POST", "/adjustments", {"amount": "1", "reason": "r"}),
        ("GET", "/records", None),
        ("GET", "/records/inference", None),
        ("GET", "/limits", None),
    ],
)
async def test_a_team_that_is_not_there(
    operator: httpx.AsyncClient, method: str, path: str, body: Json | None
) -> None:
    if path == "/tier":
        body = {"tier_id": await open_tier(operator)}
    request = operator.request(method, f"/teams/{new_name('team')}{path}", json=body)
    await refused(request, 404, "team_not_found")


async def test_ids_in_addresses_are_checked_before_they_reach_the_database(
    operator: httpx.AsyncClient,
) -> None:
    await refused(operator.get("/teams/a%00b"), 422, "invalid_value", "team_id")
    await refused(operator.get("/teams/a%7Bb%7D/account"), 422, "invalid_value", "team_id")
