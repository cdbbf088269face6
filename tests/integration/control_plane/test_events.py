"""Change events: what was committed is published, once, in order; and an operator can see when."""

import asyncio

import httpx
from integration.control_plane.opened import (
    Json,
    credit,
    open_team,
    open_tier,
    refused,
    told,
    was_published,
)
from integration.control_plane.stream import published
from integration.tables.rows import new_name

from quotagate.stack import Servers


async def test_every_change_has_its_event(operator: httpx.AsyncClient, servers: Servers) -> None:
    team_id, tier_id = await open_team(operator), new_name("tier")
    tier = await told(operator.put(f"/tiers/{tier_id}", json={"rpm": 1, "tpm": 1}), 201)
    moved = await told(operator.put(f"/teams/{team_id}/tier", json={"tier_id": tier_id}))
    key = await told(operator.post(f"/teams/{team_id}/keys", json={}), 201)
    changed = await told(operator.patch(f"/keys/{key['key_id']}", json={"limits": {"rpm": 1}}))
    revoked = await told(operator.delete(f"/keys/{key['key_id']}"))
    entry = await credit(operator, team_id, "0.1")
    expected: dict[str, tuple[Json, Json]] = {
        f"quota.v1.control.policy.changed.{tier_id}": (tier, {"tier_id": tier_id}),
        f"quota.v1.control.tier.changed.{team_id}": (
            moved,
            {"team_id": team_id, "tier_id": tier_id, "version": 2},
        ),
        f"quota.v1.control.key.changed.{key['key_id']}": (
            changed,
            {"key_id": key["key_id"], "team_id": team_id},
        ),
        f"quota.v1.control.key.revoked.{key['key_id']}": (
            revoked,
            {"key_id": key["key_id"], "team_id": team_id},
        ),
        f"quota.v1.control.account.adjusted.{team_id}": (
            entry,
            {"amount_usd": "0.1", "balance_usd": "0.1", "version": 1},
        ),
    }
    for subject, (change, message) in expected.items():
        event = await was_published(operator, change["event_id"])
        assert event["subject"] == subject
        assert event["message"].items() >= message.items()
        (found,) = await published(servers, subject)
        assert (found.event_id, found.message) == (change["event_id"], event["message"])


async def test_a_price_is_announced(operator: httpx.AsyncClient, servers: Servers) -> None:
    usd = {"input": "1", "output": "1"}
    new = {"provider": "fake", "model": new_name("m"), "usd_per_million": usd}
    made = await told(operator.post("/prices", json=new), 201)
    await was_published(operator, made["event_id"])
    found = await published(servers, "quota.v1.control.price.changed")
    (mine,) = [event for event in found if event.event_id == made["event_id"]]
    assert mine.message["price_id"] == made["price_id"]


async def test_what_was_refused_is_not_announced(
    operator: httpx.AsyncClient, servers: Servers
) -> None:
    team_id = await open_team(operator)
    too_much = {"amount": "9000000000", "reason": "r"}
    await told(operator.post(f"/teams/{team_id}/credits", json=too_much), 201)
    post = operator.post(f"/teams/{team_id}/credits", json=too_much)
    await refused(post, 422, "invalid_value", "amount")
    last = await credit(operator, await open_team(operator))
    await was_published(operator, last["event_id"])
    assert len(await published(servers, f"quota.v1.control.account.adjusted.{team_id}")) == 1


async def test_one_subject_keeps_the_order_of_its_commits(
    operator: httpx.AsyncClient, servers: Servers
) -> None:
    team_id = await open_team(operator)
    entries = await asyncio.gather(*(credit(operator, team_id, "0.01") for _ in range(40)))
    for entry in entries:
        await was_published(operator, entry["event_id"])
    found = await published(servers, f"quota.v1.control.account.adjusted.{team_id}")
    assert [event.message["version"] for event in found] == list(range(1, 41))


async def test_events_are_listed_newest_first_and_by_whether_they_are_owed(
    operator: httpx.AsyncClient,
) -> None:
    tier_id = await open_tier(operator)
    last = await told(operator.put(f"/tiers/{tier_id}", json={"rpm": 2, "tpm": 2}))
    event = await was_published(operator, last["event_id"])
    assert (await told(operator.get("/events?limit=1")))["items"] == [event]
    assert (await told(operator.get("/events?published=true&limit=1")))["items"] == [event]
    assert event not in (await told(operator.get("/events?published=false")))["items"]
    await refused(operator.get("/events/nothing"), 404, "event_not_found")
