"""`Idempotency-Key`: the same key and the same body happen once, whatever comes between."""

import asyncio
import json

import httpx
import pytest
from integration.control_plane.opened import Json, open_team, open_tier, refused, told
from integration.control_plane.process import ControlPlane
from integration.tables.rows import new_name
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

REPLAY = "x-quotagate-idempotent-replay"
CREDIT = {"amount": "5", "reason": "Paid in"}


def once(key: str | None = None) -> dict[str, str]:
    return {"Idempotency-Key": key or new_name("once")}


async def version(operator: httpx.AsyncClient, team_id: str) -> int:
    account = await told(operator.get(f"/teams/{team_id}/account"))
    found: int = account["version"]
    return found


async def creations(operator: httpx.AsyncClient) -> list[tuple[str, Json]]:
    """Return every address that creates something, with a body that works."""
    team_id, tier_id = await open_team(operator), await open_tier(operator)
    usd = {"input": "1", "output": "1"}
    return [
        ("/teams", {"team_id": new_name("team"), "tier_id": tier_id}),
        (f"/teams/{team_id}/credits", CREDIT),
        (f"/teams/{team_id}/adjustments", {"amount": "-1", "reason": "r"}),
        ("/prices", {"provider": "fake", "model": new_name("m"), "usd_per_million": usd}),
    ]


async def test_a_repeat_is_told_the_first_answer(operator: httpx.AsyncClient) -> None:
    for path, body in await creations(operator):
        headers = once()
        first = await operator.post(path, json=body, headers=headers)
        again = await operator.post(path, json=body, headers=headers)
        assert (first.status_code, again.status_code) == (201, 201), path
        assert again.content == first.content
        assert REPLAY not in first.headers
        assert again.headers[REPLAY] == "true"


async def test_a_repeated_credit_is_credited_once(operator: httpx.AsyncClient) -> None:
    team_id, headers = await open_team(operator), once()
    for _ in range(3):
        await told(operator.post(f"/teams/{team_id}/credits", json=CREDIT, headers=headers), 201)
    assert await version(operator, team_id) == 1


async def test_without_a_key_two_requests_are_two_credits(operator: httpx.AsyncClient) -> None:
    team_id = await open_team(operator)
    for _ in range(2):
        await told(operator.post(f"/teams/{team_id}/credits", json=CREDIT), 201)
    assert await version(operator, team_id) == 2


async def test_at_once_is_once(operator: httpx.AsyncClient) -> None:
    team_id, headers = await open_team(operator), once()
    posts = [
        operator.post(f"/teams/{team_id}/credits", json=CREDIT, headers=headers) for _ in range(8)
    ]
    answers = await asyncio.gather(*posts)
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert await version(operator, team_id) == 1


async def test_the_same_json_written_differently_is_the_same_request(
    operator: httpx.AsyncClient,
) -> None:
    team_id, headers = await open_team(operator), once()
    path = f"/teams/{team_id}/credits"
    await told(operator.post(path, json=CREDIT, headers=headers), 201)
    text = json.dumps(dict(reversed(CREDIT.items())), indent=3)
    headers = headers | {"Content-Type": "application/json"}
    again = await operator.post(path, content=text, headers=headers)
    assert again.headers.get(REPLAY) == "true"


async def test_another_body_is_refused_and_does_nothing(operator: httpx.AsyncClient) -> None:
    team_id, headers = await open_team(operator), once()
    path = f"/teams/{team_id}/credits"
    await told(operator.post(path, json=CREDIT, headers=headers), 201)
    other = operator.post(path, json=CREDIT | {"amount": "6"}, headers=headers)
    await refused(other, 422, "idempotency_key_reused", "Idempotency-Key")
    assert await version(operator, team_id) == 1


async def test_another_team_is_another_request(operator: httpx.AsyncClient) -> None:
    first, second, headers = await open_team(operator), await open_team(operator), once()
    await told(operator.post(f"/teams/{first}/credits", json=CREDIT, headers=headers), 201)
    other = operator.post(f"/teams/{second}/credits", json=CREDIT, headers=headers)
    await refused(other, 422, "idempotency_key_reused", "Idempotency-Key")


async def test_another_route_has_keys_of_its_own(operator: httpx.AsyncClient) -> None:
    team_id, headers = await open_team(operator), once()
    for path in ("credits", "adjustments"):
        await told(operator.post(f"/teams/{team_id}/{path}", json=CREDIT, headers=headers), 201)
    assert await version(operator, team_id) == 2


async def test_an_error_is_not_kept(operator: httpx.AsyncClient) -> None:
    headers, tier_id = once(), new_name("tier")
    body = {"team_id": new_name("team"), "tier_id": tier_id}
    post = operator.post("/teams", json=body, headers=headers)
    await refused(post, 422, "tier_not_found", "tier_id")
    await told(operator.put(f"/tiers/{tier_id}", json={"rpm": 1, "tpm": 1}), 201)
    await told(operator.post("/teams", json=body, headers=headers), 201)


async def test_a_secret_is_not_shown_again(operator: httpx.AsyncClient) -> None:
    team_id, headers = await open_team(operator), once()
    first = await told(operator.post(f"/teams/{team_id}/keys", json={}, headers=headers), 201)
    again = await told(operator.post(f"/teams/{team_id}/keys", json={}, headers=headers), 201)
    assert first["key"].startswith("qg_")
    assert again == first | {"key": None}
    assert len((await told(operator.get(f"/teams/{team_id}/keys")))["items"]) == 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 256], ids=repr)
async def test_impossible_keys_are_refused(operator: httpx.AsyncClient, key: str) -> None:
    team_id = await open_team(operator)
    headers = {"Idempotency-Key": key}
    post = operator.post(f"/teams/{team_id}/credits", json=CREDIT, headers=headers)
    await refused(post, 422, "invalid_value", "Idempotency-Key")
    assert await version(operator, team_id) == 0


async def test_while_the_first_is_still_running_the_second_is_told_to_ask_again(
    operator: httpx.AsyncClient, owner: AsyncEngine
) -> None:
    team_id, key = await open_team(operator), new_name("once")
    path = f"/teams/{team_id}/credits"
    async with owner.connect() as first:
        await first.execute(
            text(
                "INSERT INTO admin_idempotency (key, route, request_hash)"
                " VALUES (:key, 'POST /admin/v1/teams/{team_id}/credits', :hash)"
            ),
            {"key": key, "hash": bytes(32)},
        )
        answer = await operator.post(path, json=CREDIT, headers=once(key))
        assert (answer.status_code, answer.headers["retry-after"]) == (409, "1")
        assert answer.json()["error"]["code"] == "idempotency_key_in_use"
        await first.rollback()
    await told(operator.post(path, json=CREDIT, headers=once(key)), 201)


async def test_it_holds_over_a_restart(control_plane: ControlPlane) -> None:
    async with control_plane.operator() as operator:
        team_id, headers = await open_team(operator), once()
        path = f"/teams/{team_id}/credits"
        first = await told(operator.post(path, json=CREDIT, headers=headers), 201)
    await control_plane.stop()
    await control_plane.start_ready()
    async with control_plane.operator() as operator:
        assert await told(operator.post(path, json=CREDIT, headers=headers), 201) == first
        assert await version(operator, team_id) == 1
