"""Who is refused, with which words, and that no provider hears of it."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from integration.edge_proxy.stand_ins import BEFORE, Latch
from integration.edge_proxy.world import World, eventually

from contracts.admission import Decision, KeyLimits, PreflightReply, PreflightRequest
from contracts.control import KEY_CHANGED, KEY_REVOKED, KeyChanged, KeyRevoked
from contracts.errors import ErrorCode
from kit.bus.publishing import Publisher
from kit.bus.serving import ReplyError
from kit.clock import SystemClock

UNAVAILABLE = "Rate limit check is temporarily unavailable."


@pytest.mark.parametrize(
    ("reply", "status", "code", "headers"),
    [
        pytest.param(
            PreflightReply(decision=Decision.MODEL_NOT_PRICED),
            400,
            "model_not_priced",
            {},
            id="not priced",
        ),
        pytest.param(
            PreflightReply(decision=Decision.BALANCE_NEGATIVE, limits=BEFORE),
            402,
            "credit_balance_exhausted",
            {"x-should-retry": "false"},
            id="no credit",
        ),
        pytest.param(
            PreflightReply(
                decision=Decision.RATE_LIMITED,
                reason="requests",
                retry_after_us=1_200_000,
                limits=BEFORE,
            ),
            429,
            "rate_limit_exceeded",
            {
                "retry-after": "2",
                "retry-after-ms": "1200",
                "x-ratelimit-reason": "requests",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "60000",
            },
            id="limited",
        ),
    ],
)
async def test_decisions(
    world: World, reply: PreflightReply, status: int, code: str, headers: Mapping[str, str]
) -> None:
    team = world.team()

    async def decide(_request: PreflightRequest) -> PreflightReply:
        return reply

    world.stand_ins.on_preflight[team.team_id] = decide
    answer = await world.ask(team)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert {name: answer.headers[name] for name in headers} == headers
    assert "x-inference-id" in answer.headers
    assert ("x-ratelimit-limit-requests" in answer.headers) == (status == 429)
    assert await world.hits(team) == 0
    assert await world.records.of(team.team_id) == []


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        (ErrorCode.STORE_UNAVAILABLE, 503, "service_unavailable"),
        (ErrorCode.OVERLOADED, 503, "service_unavailable"),
        (ErrorCode.NOT_READY, 503, "service_unavailable"),
        (ErrorCode.INTERNAL, 503, "service_unavailable"),
        (ErrorCode.DEADLINE_EXCEEDED, 503, "service_unavailable"),
        (ErrorCode.UNKNOWN_TEAM, 401, "invalid_api_key"),
    ],
)
async def test_no_decision(world: World, code: ErrorCode, status: int, error: str) -> None:
    team = world.team()

    async def fail(_request: PreflightRequest) -> PreflightReply:
        raise ReplyError(code)

    world.stand_ins.on_preflight[team.team_id] = fail
    answer = await world.ask(team)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, error)
    if status == 503:
        assert answer.json()["error"]["message"] == UNAVAILABLE
        assert answer.headers["retry-after"] == "1"
    assert "x-ratelimit-limit-requests" not in answer.headers
    assert await world.hits(team) == 0


async def test_a_preflight_carries_its_deadline(world: World) -> None:
    team = world.team()
    before_us = SystemClock().now_us()
    await world.ask(team)
    (request,) = world.stand_ins.preflights_of(team.team_id)
    # This edge waits ten seconds, so that a busy machine fails no test.
    assert before_us + 10_000_000 <= request.deadline_us <= SystemClock().now_us() + 10_000_000
    assert [(one.provider, one.model) for one in request.deployments] == [("fake", "plain")]


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"revoked": True}, id="revoked"),
        pytest.param({"expires_at_us": 1}, id="expired"),
        pytest.param({"secret_hash": "0" * 64}, id="another secret"),
        pytest.param({"secret_hash": ""}, id="no hash"),
    ],
)
async def test_keys_that_are_not_right_are_told_the_same(
    world: World, facts: dict[str, Any]
) -> None:
    team, unknown = world.team(**facts), world.team()
    del world.stand_ins.keys[unknown.key_id]
    wrong, absent = await world.ask(team), await world.ask(unknown)
    assert (wrong.status_code, absent.status_code) == (401, 401)
    assert wrong.json() == absent.json()
    assert wrong.json()["error"]["code"] == "invalid_api_key"
    assert world.stand_ins.preflights_of(team.team_id) == []


async def test_a_key_that_is_no_key_is_not_looked_up(world: World) -> None:
    team = world.team()
    typo = team.key[:-1] + ("x" if team.key[-1] != "x" else "y")
    before = len(world.stand_ins.lookups)
    answer = await world.http.get("/v1/models", headers={"authorization": f"Bearer {typo}"})
    assert answer.status_code == 401
    assert len(world.stand_ins.lookups) == before


async def test_a_key_is_looked_up_once(world: World) -> None:
    team, latch = world.team(), Latch()
    world.stand_ins.on_lookup[team.key_id] = latch.wait
    asking = [asyncio.create_task(world.ask(team)) for _ in range(8)]
    await latch.reached.wait()
    latch.open.set()
    assert {(await answer).status_code for answer in asking} == {200}
    assert (await world.ask(team)).status_code == 200
    assert world.stand_ins.lookups.count(team.key_id) == 1


async def _revoke(world: World, key_id: str, team_id: str) -> None:
    event = KeyRevoked(key_id=key_id, team_id=team_id, changed_at_us=1)
    await Publisher(world.bus).publish(KEY_REVOKED, key_id, event, f"revoke-{key_id}", 10)


async def test_a_revoked_key_is_forgotten(world: World) -> None:
    team = world.team()
    assert (await world.ask(team)).status_code == 200
    # tier-cache still says what it said: only the announcement counts.
    await _revoke(world, team.key_id, team.team_id)

    async def refused() -> bool:
        return (await world.ask(team)).status_code == 401

    await eventually(refused)


async def test_a_changed_key_is_asked_for_again_and_its_limits_go_to_admission(
    world: World,
) -> None:
    team, own = world.team(), KeyLimits(rpm=5, request_burst=2)
    assert (await world.ask(team)).status_code == 200
    facts = world.stand_ins.keys[team.key_id]
    world.stand_ins.keys[team.key_id] = msgspec.structs.replace(facts, limits=own)
    event = KeyChanged(key_id=team.key_id, team_id=team.team_id, changed_at_us=1)
    await Publisher(world.bus).publish(KEY_CHANGED, team.key_id, event, f"c-{team.key_id}", 10)

    async def told() -> bool:
        assert (await world.ask(team)).status_code == 200
        return world.stand_ins.preflights_of(team.team_id)[-1].key_limits is not None

    await eventually(told)
    asked = [request.key_limits for request in world.stand_ins.preflights_of(team.team_id)]
    assert asked[0] is None
    assert asked[-1] == own


async def test_a_revocation_overtakes_an_answer_on_its_way(world: World) -> None:
    team, other, latch = world.team(), world.team(), Latch()
    world.stand_ins.on_lookup[team.key_id] = latch.wait
    asking = asyncio.create_task(world.ask(team))
    await latch.reached.wait()
    await _revoke(world, team.key_id, team.team_id)
    await _revoke(world, other.key_id, other.team_id)

    async def other_is_refused() -> bool:
        return (await world.ask(other)).status_code == 401

    # Announcements are heard in order: the other's was heard, so ours was.
    await eventually(other_is_refused)
    latch.open.set()
    assert (await asking).status_code == 401
    assert await world.hits(team) == 0


async def test_models_a_key_may_not_use(world: World) -> None:
    team = world.team(allowed_models=("plain",))
    assert (await world.ask(team)).status_code == 200
    refused = await world.ask(team, model="renamed")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "model_not_allowed")
    unknown = await world.ask(team, model="gpt-17")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
    assert len(world.stand_ins.preflights_of(team.team_id)) == 1


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("POST", "/v1/models", 405, "method_not_allowed"),
        ("POST", "/v1/nothing", 404, "unknown_url"),
        ("GET", "/", 404, "unknown_url"),
        ("POST", "/v1/chat/completions/", 404, "unknown_url"),
    ],
)
async def test_addresses(world: World, method: str, path: str, status: int, code: str) -> None:
    answer = await world.http.request(method, path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
