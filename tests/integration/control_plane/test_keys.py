"""API keys: shown once, kept as a hash, revoked for good."""

import httpx
import pytest
from integration.control_plane.opened import Json, open_team, refused, told, was_published
from integration.control_plane.process import KEY_PEPPER
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from kit import keys


async def test_a_key_is_shown_once(operator: httpx.AsyncClient) -> None:
    team_id = await open_team(operator)
    made = await told(operator.post(f"/teams/{team_id}/keys", json={"name": "batch"}), 201)
    parsed = keys.parse(made["key"])
    assert parsed is not None
    assert parsed.key_id == made["key_id"]
    (listed,) = (await told(operator.get(f"/teams/{team_id}/keys")))["items"]
    del made["key"]
    assert listed == made
    assert (made["name"], made["allowed_models"], made["revoked_at"]) == ("batch", None, None)


async def test_what_is_stored_matches_the_key_under_the_pepper(
    operator: httpx.AsyncClient, owner: AsyncEngine
) -> None:
    made = await told(operator.post(f"/teams/{await open_team(operator)}/keys", json={}), 201)
    async with owner.connect() as connection:
        stored = await connection.scalar(
            text("SELECT secret_hash FROM api_key WHERE key_id = :id"), {"id": made["key_id"]}
        )
    parsed = keys.parse(made["key"])
    assert parsed is not None
    assert keys.matches(parsed, stored.hex(), KEY_PEPPER)


async def test_a_key_whose_limits_cannot_be_is_named_mended_and_revoked(
    operator: httpx.AsyncClient, owner: AsyncEngine
) -> None:
    path = f"/teams/{await open_team(operator)}/keys"
    good, *bad = [await told(operator.post(path, json={}), 201) for _ in range(3)]
    async with owner.begin() as connection:
        spoil = 'UPDATE api_key SET limits = \'{"tpm": "many"}\' WHERE key_id = ANY (:ids)'
        await connection.execute(text(spoil), {"ids": [key["key_id"] for key in bad]})
    listed = {key["key_id"]: key for key in (await told(operator.get(path)))["items"]}
    assert listed[good["key_id"]]["problem"] is None
    for key in bad:
        assert listed[key["key_id"]]["limits"] is None
        assert "tpm" in listed[key["key_id"]]["problem"]
    mended = await told(operator.patch(f"/keys/{bad[0]['key_id']}", json={"limits": {"tpm": 5}}))
    assert (mended["limits"]["tpm"], mended["problem"]) == (5, None)
    revoked = await told(operator.delete(f"/keys/{bad[1]['key_id']}"))
    assert revoked["revoked_at"] is not None


async def test_models_and_expiry_are_kept(operator: httpx.AsyncClient) -> None:
    new = {
        "name": "narrow",
        "allowed_models": ["gpt-4o", "meta-llama/Llama-3.1-8B:free"],
        "expires_at": "2999-12-31T23:30:00.000001+01:00",
    }
    made = await told(operator.post(f"/teams/{await open_team(operator)}/keys", json=new), 201)
    assert made["allowed_models"] == new["allowed_models"]
    assert made["expires_at"] == "2999-12-31T22:30:00.000001Z"


@pytest.mark.parametrize(
    ("new", "code", "field"),
    [
        pytest.param(
            {"expires_at": "2001-01-01T00:00:00Z"}, "invalid_value", "expires_at", id="past"
        ),
        pytest.param({"expires_at": "2999-01-01"}, "invalid_value", "expires_at", id="only a day"),
        pytest.param(
            {"expires_at": "2999-01-01T00:00:00"}, "invalid_value", "expires_at", id="no offset"
        ),
        pytest.param({"expires_at": 32503680000}, "invalid_value", "expires_at", id="a number"),
        pytest.param(
            {"expires_at": "2999-02-30T00:00:00Z"}, "invalid_value", "expires_at", id="no such day"
        ),
        pytest.param(
            {"expires_at": "9999-12-31T23:59:59-14:00"},
            "invalid_value",
            "expires_at",
            id="beyond the calendar",
        ),
        pytest.param({"allowed_models": []}, "invalid_value", "allowed_models", id="no models"),
        pytest.param(
            {"allowed_models": ["a b"]},
            "invalid_value",
            "allowed_models.0",
            id="a space in a model",
        ),
        pytest.param(
            {"allowed_models": ["m"] * 201}, "invalid_value", "allowed_models", id="201 models"
        ),
        pytest.param({"key": "qg_mine"}, "unknown_field", "key", id="a secret of one's own"),
    ],
)
async def test_impossible_keys_are_refused(
    operator: httpx.AsyncClient, new: Json, code: str, field: str
) -> None:
    team_id = await open_team(operator)
    await refused(operator.post(f"/teams/{team_id}/keys", json=new), 422, code, field)
    assert (await told(operator.get(f"/teams/{team_id}/keys")))["items"] == []


async def test_a_key_has_limits_of_its_own_until_they_are_taken_away(
    operator: httpx.AsyncClient,
) -> None:
    path = f"/teams/{await open_team(operator)}/keys"
    own = {"rpm": 5, "request_burst": 2, "shadow": ["key_requests"]}
    made = await told(operator.post(path, json={"limits": own}), 201)
    assert made["limits"] == {"tpm": None, "token_burst": 0, "spend_limits": []} | own

    narrower = {"limits": {"tpm": 9}, "allowed_models": ["m"], "name": "narrow"}
    changed = await told(operator.patch(f"/keys/{made['key_id']}", json=narrower))
    # All of its limits are replaced, and what wasn't named stays.
    assert (changed["limits"]["rpm"], changed["limits"]["tpm"]) == (None, 9)
    assert (changed["allowed_models"], changed["name"]) == (["m"], "narrow")
    assert changed["event_id"] is not None
    again = await told(operator.patch(f"/keys/{made['key_id']}", json=narrower))
    assert again == changed | {"event_id": None}

    plain = await told(
        operator.patch(f"/keys/{made['key_id']}", json={"limits": None, "allowed_models": None})
    )
    assert (plain["limits"], plain["allowed_models"], plain["name"]) == (None, None, "narrow")
    (listed,) = (await told(operator.get(path)))["items"]
    del plain["event_id"]
    assert listed == plain


@pytest.mark.parametrize(
    ("limits", "code", "field"),
    [
        pytest.param({}, "invalid_value", "limits", id="none"),
        pytest.param({"rpm": 0}, "invalid_value", "limits.rpm", id="no requests"),
        pytest.param({"tpm": -1}, "invalid_value", "limits.tpm", id="negative tokens"),
        pytest.param({"tpm": "9"}, "invalid_value", "limits.tpm", id="a string"),
        pytest.param({"rps": 1}, "unknown_field", "limits.rps", id="an unknown field"),
        pytest.param({"request_burst": 1}, "invalid_value", "limits", id="a burst of nothing"),
        pytest.param(
            {"rpm": 1, "token_burst": 1},
            "invalid_value",
            "limits.token_burst",
            id="a burst without its limit",
        ),
        pytest.param(
            {"rpm": 1, "request_burst": 2},
            "invalid_value",
            "limits.request_burst",
            id="a burst above the limit",
        ),
        pytest.param(
            {"rpm": 1, "shadow": ["key_tokens"]},
            "invalid_value",
            "limits.shadow",
            id="shadow of what it doesn't have",
        ),
        pytest.param(
            {"rpm": 1, "shadow": ["requests"]},
            "invalid_value",
            "limits.shadow",
            id="shadow of the team's",
        ),
    ],
)
async def test_impossible_limits_of_a_key_are_refused(
    operator: httpx.AsyncClient, limits: Json, code: str, field: str
) -> None:
    path = f"/teams/{await open_team(operator)}/keys"
    await refused(operator.post(path, json={"limits": limits}), 422, code, field)
    made = await told(operator.post(path, json={}), 201)
    patch = operator.patch(f"/keys/{made['key_id']}", json={"limits": limits})
    await refused(patch, 422, code, field)
    (listed,) = (await told(operator.get(path)))["items"]
    assert listed["limits"] is None


async def test_what_can_not_be_changed(operator: httpx.AsyncClient) -> None:
    path = f"/teams/{await open_team(operator)}/keys"
    made = await told(operator.post(path, json={}), 201)
    this = f"/keys/{made['key_id']}"
    past = {"expires_at": "2001-01-01T00:00:00Z"}
    await refused(operator.patch(this, json=past), 422, "invalid_value", "expires_at")
    await refused(operator.patch(this, json={"name": None}), 422, "invalid_value", "name")
    await refused(operator.patch(this, json={"team_id": "x"}), 422, "unknown_field", "team_id")
    unchanged = await told(operator.patch(this, json={}))
    assert unchanged["event_id"] is None
    await told(operator.delete(this))
    await refused(operator.patch(this, json={"name": "late"}), 409, "key_revoked")
    await refused(operator.patch("/keys/nobody", json={}), 404, "key_not_found")


async def test_a_key_is_revoked_once_and_stays_listed(operator: httpx.AsyncClient) -> None:
    team_id = await open_team(operator)
    made = await told(operator.post(f"/teams/{team_id}/keys", json={}), 201)
    first = await told(operator.delete(f"/keys/{made['key_id']}"))
    assert first["revoked_at"] is not None
    assert first["event_id"] is not None
    again = await told(operator.delete(f"/keys/{made['key_id']}"))
    assert (again["revoked_at"], again["event_id"]) == (first["revoked_at"], None)
    (listed,) = (await told(operator.get(f"/teams/{team_id}/keys")))["items"]
    assert listed["revoked_at"] == first["revoked_at"]


async def test_a_key_that_is_not_there(operator: httpx.AsyncClient) -> None:
    await refused(operator.delete("/keys/nobody"), 404, "key_not_found")


async def _stored_hashes(owner: AsyncEngine, key_id: str) -> tuple[str, str]:
    async with owner.connect() as connection:
        row = (
            await connection.execute(
                text("SELECT secret_hash, old_secret_hash FROM api_key WHERE key_id = :id"),
                {"id": key_id},
            )
        ).one()
    return row.secret_hash.hex(), row.old_secret_hash.hex()


async def test_a_rotation_shows_another_secret_and_keeps_the_rest(
    operator: httpx.AsyncClient, owner: AsyncEngine
) -> None:
    own = {"limits": {"rpm": 5}, "name": "batch"}
    made = await told(operator.post(f"/teams/{await open_team(operator)}/keys", json=own), 201)
    path = f"/keys/{made['key_id']}/rotate"
    rotated = await told(operator.post(path, json={"overlap_s": 3600}))
    old, new = keys.parse(made["key"]), keys.parse(rotated["key"])
    assert old is not None
    assert new is not None
    assert new.key_id == old.key_id == rotated["key_id"]
    hashes = await _stored_hashes(owner, old.key_id)
    assert keys.matches(new, hashes[0], KEY_PEPPER)
    assert keys.matches(old, hashes[1], KEY_PEPPER)
    event = await was_published(operator, rotated["event_id"])
    assert event["subject"] == f"quota.v1.control.key.changed.{old.key_id}"
    stays = {"team_id", "name", "limits", "created_at", "expires_at", "revoked_at"}
    assert {name: rotated[name] for name in stays} == {name: made[name] for name in stays}
    assert made["old_secret_until"] is None
    assert rotated["old_secret_until"] > made["created_at"]

    # Only the last two can be good.
    third = await told(operator.post(path, json={"overlap_s": 0}))
    hashes = await _stored_hashes(owner, old.key_id)
    assert keys.matches(new, hashes[1], KEY_PEPPER)
    assert third["old_secret_until"] < rotated["old_secret_until"]


async def test_a_rotation_that_is_repeated_rotates_once(operator: httpx.AsyncClient) -> None:
    made = await told(operator.post(f"/teams/{await open_team(operator)}/keys", json={}), 201)
    headers = {"idempotency-key": made["key_id"]}
    path = f"/keys/{made['key_id']}/rotate"
    first = await told(operator.post(path, json={}, headers=headers))
    again = await told(operator.post(path, json={}, headers=headers))
    assert first["key"] is not None
    assert again == first | {"key": None}


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        pytest.param({"overlap_s": -1}, "invalid_value", id="negative"),
        pytest.param({"overlap_s": 90 * 24 * 3600 + 1}, "invalid_value", id="beyond 90 days"),
        pytest.param({"overlap_s": "1"}, "invalid_value", id="a string"),
        pytest.param({"overlap_s": None}, "invalid_value", id="null"),
    ],
)
async def test_impossible_overlaps_are_refused(
    operator: httpx.AsyncClient, asked: Json, code: str
) -> None:
    made = await told(operator.post(f"/teams/{await open_team(operator)}/keys", json={}), 201)
    path = f"/keys/{made['key_id']}/rotate"
    await refused(operator.post(path, json=asked), 422, code, "overlap_s")


async def test_only_a_valid_key_is_rotated(operator: httpx.AsyncClient) -> None:
    made = await told(operator.post(f"/teams/{await open_team(operator)}/keys", json={}), 201)
    await told(operator.delete(f"/keys/{made['key_id']}"))
    await refused(operator.post(f"/keys/{made['key_id']}/rotate", json={}), 409, "key_revoked")
    await refused(operator.post("/keys/nothing/rotate", json={}), 404, "key_not_found")


async def test_a_key_has_a_limit_of_spend_of_its_own(operator: httpx.AsyncClient) -> None:
    path = f"/teams/{await open_team(operator)}/keys"
    own = {"period": "month", "limit_usd": "2.50", "thresholds": [90]}
    made = await told(operator.post(path, json={"limits": {"spend_limits": [own]}}), 201)
    told_back = {"scope": "key", "mode": "hard", "limit_usd": "2.5"}
    assert made["limits"]["spend_limits"] == [own | told_back]
    again = await told(operator.patch(f"/keys/{made['key_id']}", json={"limits": made["limits"]}))
    assert again["event_id"] is None


@pytest.mark.parametrize(
    ("limits", "code", "field"),
    [
        pytest.param(
            {"spend_limits": [{"period": "day", "limit_usd": "1", "scope": "team"}]},
            "invalid_value",
            "limits.spend_limits.0.scope",
            id="of the team",
        ),
        pytest.param(
            {"spend_limits": [{"period": "day", "limit_usd": "1"}] * 2},
            "invalid_value",
            "limits.spend_limits.1",
            id="the same twice",
        ),
        pytest.param(
            {"spend_limits": [{"period": "day", "limit_usd": "1"}], "shadow": ["key_month_spend"]},
            "invalid_value",
            "limits.shadow",
            id="a shadow of none",
        ),
        pytest.param(
            {"spend_limits": [{"period": "day", "limit_usd": "1"}], "request_burst": 1},
            "invalid_value",
            "limits.request_burst",
            id="a burst of none",
        ),
    ],
)
async def test_impossible_limits_of_spend_of_a_key_are_refused(
    operator: httpx.AsyncClient, limits: Json, code: str, field: str
) -> None:
    path = f"/teams/{await open_team(operator)}/keys"
    await refused(operator.post(path, json={"limits": limits}), 422, code, field)
