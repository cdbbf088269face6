"""Retries and fallbacks: every attempt has its record and its price, and each may be paid for."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from integration.edge_proxy.raw_provider import Conversation, RawProvider
from integration.edge_proxy.stand_ins import Preflight, allow
from integration.edge_proxy.test_clients_leave import idle
from integration.edge_proxy.world import Team, World
from integration.edge_proxy.world import world as new_world

from contracts.admission import Decision, Lease, PreflightReply, PreflightRequest
from contracts.errors import ErrorCode
from contracts.inference import InferenceRecord, Outcome
from kit.bus.serving import ReplyError
from quotagate.stack import Stack

STREAM = {"stream": True}
ATTEMPTS = "x-quotagate-attempts"


def failing(team: Team, times: int, status: int = 503, **knobs: Any) -> dict[str, Any]:
    """Return orders by which a team's first so many requests fail."""
    return {"status": status, "fail_times": times, "fail_key": team.team_id, **knobs}


async def attempts(world: World, team: Team, count: int) -> list[InferenceRecord]:
    """Return a team's records by attempt; they are of one inference, numbered from 1."""
    records = await world.records.some(team.team_id, count)
    assert len({record.inference_id for record in records}) == 1
    assert [record.attempt_no for record in records] == list(range(1, count + 1))
    return records


@pytest.mark.parametrize("more", [{}, STREAM], ids=["whole", "stream"])
async def test_the_next_deployment_answers_at_its_own_price(
    world: World, more: dict[str, Any]
) -> None:
    team = world.team()
    answer = await world.ask(team, model="pair", more=more, **failing(team, 1))
    assert answer.status_code == 200
    first, second = await attempts(world, team, 2)
    assert (answer.headers["x-inference-id"], answer.headers[ATTEMPTS]) == (first.inference_id, "2")
    assert (first.outcome, first.status_code, first.usage) == (Outcome.FAILED, 503, None)
    assert (first.model_sent, first.price_id) == ("one", "fake-one")
    assert (second.outcome, second.status_code) == (Outcome.SUCCEEDED, 200)
    assert (second.model_sent, second.price_id) == ("two", "fake-two")
    (charged,) = world.stand_ins.postflights_of(team.team_id)
    assert (charged.attempt_no, charged.price.price_id) == (2, "fake-two")


async def test_three_attempts_three_records(world: World) -> None:
    team = world.team()
    answer = await world.ask(team, model="persistent", **failing(team, 2))
    assert (answer.status_code, answer.headers[ATTEMPTS]) == (200, "3")
    records = await attempts(world, team, 3)
    assert [record.status_code for record in records] == [503, 503, 200]
    assert all(record.finished_at_us is not None for record in records)
    assert [record.started_at_us for record in records] == sorted(
        record.started_at_us for record in records
    )
    # The request was counted once; each further attempt only asked whether it may be paid for.
    asked_for = world.stand_ins.preflights_of(team.team_id)
    assert [(one.attempt_no, one.further) for one in asked_for] == [
        (1, False),
        (2, True),
        (3, True),
    ]


async def test_when_all_fail_the_last_failure_is_the_answer(world: World) -> None:
    team = world.team()
    answer = await world.ask(team, model="persistent", status=500)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "provider_failed")
    assert answer.headers[ATTEMPTS] == "3"
    assert "x-inference-id" in answer.headers
    await attempts(world, team, 3)
    assert await world.hits(team) == 3


async def test_nobody_there_then_nobody_let_in_then_an_answer(world: World) -> None:
    team = world.team()
    answer = await world.ask(team, model="far-and-near")
    assert (answer.status_code, answer.headers[ATTEMPTS]) == (200, "3")
    records = await attempts(world, team, 3)
    assert [record.status_code for record in records] == [None, 401, 200]
    assert [record.provider for record in records] == ["nowhere", "locked", "fake"]


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"", id="silence"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n<html></h", id="not an answer"),
        pytest.param(b"garbage\r\n\r\n", id="no HTTP"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{", id="half an answer"),
    ],
)
async def test_what_is_no_answer_is_asked_elsewhere(
    world: World, raw: RawProvider, said: bytes
) -> None:
    team = world.team()

    async def script(conversation: Conversation) -> None:
        await conversation.say(said)
        if not said:
            await conversation.until_left()

    raw.script = script
    answer = await world.ask(team, model="slow-and-quick")
    assert (answer.status_code, answer.headers[ATTEMPTS]) == (200, "2")
    first, second = await attempts(world, team, 2)
    assert (first.outcome, second.outcome) == (Outcome.FAILED, Outcome.SUCCEEDED)


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_what_is_wrong_with_the_request_is_asked_once(world: World, status: int) -> None:
    team = world.team()
    answer = await world.ask(team, model="pair", status=status)
    assert (answer.status_code, answer.headers[ATTEMPTS]) == (status, "1")
    assert await world.hits(team) == 1


@pytest.mark.parametrize(
    "knobs",
    [
        pytest.param({"drop_after_chunks": 0}, id="nothing but headers"),
        pytest.param({"drop_after_chunks": 2}, id="some text"),
        pytest.param({"error_after_chunks": 1}, id="an error event"),
    ],
)
async def test_a_stream_that_began_is_never_begun_again(
    world: World, knobs: dict[str, Any]
) -> None:
    team = world.team()
    answer = await world.ask(team, model="pair", more=STREAM, **knobs)
    assert (answer.status_code, answer.headers[ATTEMPTS]) == (200, "1")
    assert b"[DONE]" not in answer.content
    assert await world.hits(team) == 1
    assert len(await world.records.some(team.team_id, 1)) == 1


async def test_a_provider_that_asks_for_too_long_is_not_waited_for(world: World) -> None:
    team = world.team()
    answer = await world.ask(team, model="persistent", status=429, retry_after_s=11)
    assert (answer.status_code, answer.headers[ATTEMPTS]) == (429, "1")
    assert answer.headers["retry-after"] == "11"
    assert await world.hits(team) == 1


async def test_a_short_wait_that_the_provider_asks_for_is_kept(world: World) -> None:
    team = world.team()
    answer = await world.ask(
        team, model="persistent", **failing(team, 1, 429, retry_after_ms=300, retry_after_s=1)
    )
    assert (answer.status_code, answer.headers[ATTEMPTS]) == (200, "2")
    first, second = await attempts(world, team, 2)
    assert first.finished_at_us is not None
    assert second.started_at_us - first.finished_at_us >= 290_000


def then(on_further: Decision | ErrorCode) -> Preflight:
    """Return an admission that allows first attempts and says this of others."""

    async def answer(request: PreflightRequest) -> PreflightReply:
        if not request.further:
            return await allow(request)
        if isinstance(on_further, ErrorCode):
            raise ReplyError(on_further)
        return PreflightReply(decision=on_further)

    return answer


async def test_a_balance_gone_negative_is_a_402_before_the_next_attempt(world: World) -> None:
    team = world.team()
    world.stand_ins.on_preflight[team.team_id] = then(Decision.BALANCE_NEGATIVE)
    answer = await world.ask(team, model="pair", **failing(team, 1))
    assert (answer.status_code, answer.headers[ATTEMPTS]) == (402, "1")
    assert answer.json()["error"]["code"] == "credit_balance_exhausted"
    assert answer.headers["x-should-retry"] == "false"
    assert await world.hits(team) == 1
    await attempts(world, team, 1)


async def test_a_balance_that_nobody_can_tell_is_no_allowance(world: World) -> None:
    team = world.team()
    world.stand_ins.on_preflight[team.team_id] = then(ErrorCode.STORE_UNAVAILABLE)
    answer = await world.ask(team, model="pair", **failing(team, 1))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert await world.hits(team) == 1


def lending(then_decision: Decision) -> Preflight:
    """Return an admission that lends a lease to an inference, and says this of further attempts."""

    async def answer(request: PreflightRequest) -> PreflightReply:
        lease = Lease(name=f"{request.inference_id}:{request.attempt_no}", life_us=60_000_000)
        told = await then(then_decision)(request)
        return told if request.further else msgspec.structs.replace(told, lease=lease)

    return answer


def leases_ended(world: World, team: Team) -> tuple[list[str | None], list[str]]:
    """Return the leases that charges ended, and those that were given back."""
    releases = world.stand_ins.releases
    given_back = [releases.get_nowait().lease for _ in range(releases.qsize())]
    return [one.lease for one in world.stand_ins.postflights_of(team.team_id)], given_back


async def test_a_lease_is_held_over_all_attempts_and_ends_with_the_charge(world: World) -> None:
    team = world.team()
    world.stand_ins.on_preflight[team.team_id] = lending(Decision.ALLOWED)
    answer = await world.ask(team, model="persistent", **failing(team, 2))
    assert answer.headers[ATTEMPTS] == "3"
    lease = f"{answer.headers['x-inference-id']}:1"
    assert leases_ended(world, team) == ([lease], [])


@pytest.mark.parametrize(
    ("decision", "status"),
    [
        pytest.param(Decision.ALLOWED, 502, id="every attempt fails"),
        pytest.param(Decision.BALANCE_NEGATIVE, 402, id="no further one is paid for"),
    ],
)
async def test_without_a_charge_a_lease_is_given_back_before_the_answer(
    world: World, decision: Decision, status: int
) -> None:
    team = world.team()
    world.stand_ins.on_preflight[team.team_id] = lending(decision)
    answer = await world.ask(team, model="persistent", status=503)
    assert answer.status_code == status
    assert leases_ended(world, team) == ([], [f"{answer.headers['x-inference-id']}:1"])


async def test_the_pinned_prices_outlive_the_answer_to_a_further_attempt(world: World) -> None:
    team = world.team()
    world.stand_ins.on_preflight[team.team_id] = then(Decision.ALLOWED)
    answer = await world.ask(team, model="pair", **failing(team, 1))
    assert answer.status_code == 200
    _, second = await attempts(world, team, 2)
    assert (second.price_id, second.tier_id) == ("fake-two", "tier_x")


@pytest.fixture
async def own(module_servers: Stack, tmp_path: Path) -> AsyncIterator[World]:
    async with new_world(
        module_servers.servers, tmp_path, settings={"QUOTAGATE_GRACE_S": "1"}
    ) as own:
        yield own


async def test_a_wait_ends_when_the_process_has_to_leave(own: World) -> None:
    team = own.team()
    asking = asyncio.create_task(own.ask(team, model="patient", status=503))
    await own.records.some(team.team_id, 1)
    own.edge.terminate()
    await own.edge.ended()
    await asyncio.wait([asking])
    assert len(await own.records.of(team.team_id)) == 1
    assert await own.hits(team) == 1


async def test_nobody_is_asked_again_for_a_client_that_has_left(world: World) -> None:
    team = world.team()
    asking = asyncio.create_task(
        world.ask(team, model="pair", gate=team.team_id, **failing(team, 1))
    )
    await world.witness.requests(1, marker=team.team_id)
    asking.cancel()
    await asyncio.wait([asking])
    await world.witness.open_gate(team.team_id)
    (record,) = await attempts(world, team, 1)
    assert record.client_gone
    await idle(world)
    assert await world.hits(team) == 1
