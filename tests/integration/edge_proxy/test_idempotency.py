"""Requests with an idempotency key: one inference, one charge, whatever happens in between."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import openai
import pytest
from integration.edge_proxy.stand_ins import BEFORE, allow
from integration.edge_proxy.test_clients_leave import idle
from integration.edge_proxy.test_retries import failing
from integration.edge_proxy.world import CHAT, Team, World, asked, eventually
from integration.edge_proxy.world import world as new_world
from nats.js.api import StreamConfig

from contracts.admission import Decision, PreflightReply, PreflightRequest
from contracts.idempotency import IDEMPOTENCY
from contracts.inference import INFERENCE_RECORDS, Outcome
from edge_proxy.domain.idempotency import entry_key
from kit.keys import new_key
from quotagate.stack import Stack

KEY = "order 7"
REPLAY = "x-quotagate-idempotent-replay"
ATTEMPTS = "x-quotagate-attempts"
STREAM = {"stream": True}


async def ask(
    world: World, team: Team, body: dict[str, Any], key: str = KEY, path: str = CHAT
) -> httpx.Response:
    headers = {**team.headers, "idempotency-key": key}
    return await world.http.post(path, headers=headers, json=body)


def code(answer: httpx.Response) -> tuple[int, str, str]:
    error = answer.json()["error"]
    return answer.status_code, error["type"], error["code"]


RUNNING = (409, "idempotency_error", "idempotency_key_in_use")
NOT_KEPT = (409, "idempotency_error", "idempotency_not_replayable")
REUSED = (422, "idempotency_error", "idempotency_key_reused")


async def test_the_stored_answer_is_replayed(world: World) -> None:
    team = world.team()
    body = asked(team, completion_tokens=5)
    first, second = await ask(world, team, body), await ask(world, team, body)
    assert (first.status_code, second.status_code) == (200, 200)
    assert second.content == first.content
    assert (REPLAY in first.headers, second.headers[REPLAY]) == (False, "true")
    for name in ("x-inference-id", ATTEMPTS, "content-type", "x-request-id"):
        assert second.headers[name] == first.headers[name]
    # What the limits were then says nothing now.
    assert not any("ratelimit" in name for name in second.headers)
    assert await world.hits(team) == 1
    assert len(world.stand_ins.preflights_of(team.team_id)) == 1
    assert len(world.stand_ins.postflights_of(team.team_id)) == 1
    await world.records.one(team.team_id)


async def test_without_a_key_there_are_two_inferences(world: World) -> None:
    team = world.team()
    answers = [await world.ask(team) for _ in range(2)]
    assert len({answer.headers["x-inference-id"] for answer in answers}) == 2
    assert len(await world.records.some(team.team_id, 2)) == 2


async def test_another_request_is_refused(world: World) -> None:
    team = world.team()
    body = asked(team)
    assert (await ask(world, team, body)).status_code == 200
    other = await ask(world, team, {**body, "temperature": 1})
    elsewhere = await ask(world, team, body, path="/v1/completions")
    assert (code(other), code(elsewhere)) == (REUSED, REUSED)
    assert other.headers["x-should-retry"] == "false"
    assert await world.hits(team) == 1
    assert (await ask(world, team, body)).headers[REPLAY] == "true"


async def test_a_key_is_its_teams_not_its_api_keys(world: World) -> None:
    team, stranger = world.team(), world.team()
    body = asked(team)
    first = await ask(world, team, body)
    made = new_key("a pepper for these tests")
    facts = replace_key(world, team, made.key_id, made.secret_hash)
    colleague = Team(team.team_id, facts, made.text)
    assert (await ask(world, colleague, body)).headers[REPLAY] == "true"
    theirs = await ask(world, stranger, body)
    assert REPLAY not in theirs.headers
    assert theirs.headers["x-inference-id"] != first.headers["x-inference-id"]


def replace_key(world: World, team: Team, key_id: str, secret_hash: str) -> str:
    """Give a team one more API key."""
    known = world.stand_ins.keys[team.key_id]
    world.stand_ins.keys[key_id] = msgspec.structs.replace(
        known, key_id=key_id, secret_hash=secret_hash
    )
    return key_id


async def test_while_the_first_runs_the_sdk_waits_and_gets_the_replay(world: World) -> None:
    team = world.team()
    body = asked(team, gate=team.team_id)
    first = asyncio.create_task(ask(world, team, body))
    await world.witness.requests(1, marker=team.team_id)
    refused = await ask(world, team, body)
    assert (code(refused), refused.headers["retry-after"]) == (RUNNING, "1")
    other = await ask(world, team, {**body, "temperature": 1})
    assert code(other) == REUSED

    refusals = 'quotagate_idempotency_claims_total{meaning="refused"}'
    so_far = await world.edge.metric(refusals)
    async with openai.AsyncOpenAI(
        base_url=f"{world.edge.url}/v1", api_key=team.key, max_retries=20
    ) as client:
        asking = asyncio.ensure_future(
            client.chat.completions.with_raw_response.create(
                **body, extra_headers={"idempotency-key": KEY}
            )
        )
        await world.edge.becomes_more(refusals, so_far)
        await world.witness.open_gate(team.team_id)
        raw = await asking
    assert raw.headers[REPLAY] == "true"
    assert raw.content == (await first).content
    assert await world.hits(team) == 1
    await world.records.one(team.team_id)


async def test_of_many_at_once_one_runs(world: World) -> None:
    team = world.team()
    body = asked(team, gate=team.team_id)
    asking = [asyncio.create_task(ask(world, team, body)) for _ in range(20)]
    refused = 0
    for call in asyncio.as_completed(asking):
        answer = await call
        refused += answer.status_code == 409
        if refused == 19:
            await world.witness.open_gate(team.team_id)
    statuses = Counter(call.result().status_code for call in asking)
    assert statuses == {200: 1, 409: 19}
    assert await world.hits(team) == 1
    assert len(world.stand_ins.preflights_of(team.team_id)) == 1


async def test_after_a_failure_the_same_inference_goes_on(world: World) -> None:
    team = world.team()
    body = asked(team, model="persistent", **failing(team, 4))
    first = await ask(world, team, body)
    assert (first.status_code, first.headers[ATTEMPTS]) == (502, "3")
    second = await ask(world, team, body)
    assert (second.status_code, second.headers[ATTEMPTS]) == (200, "5")
    assert second.headers["x-inference-id"] == first.headers["x-inference-id"]
    records = await world.records.some(team.team_id, 5)
    assert {record.inference_id for record in records} == {first.headers["x-inference-id"]}
    assert [record.attempt_no for record in records] == [1, 2, 3, 4, 5]
    # Each request of the client is one of its limit; each further attempt only looks.
    asked_for = world.stand_ins.preflights_of(team.team_id)
    assert [(one.attempt_no, one.further) for one in asked_for] == [
        (1, False),
        (2, True),
        (3, True),
        (4, False),
        (5, True),
    ]
    assert (await ask(world, team, body)).headers[REPLAY] == "true"


async def test_what_was_refused_leaves_the_key_free(world: World) -> None:
    team = world.team()

    async def refuse(_request: PreflightRequest) -> PreflightReply:
        return PreflightReply(
            decision=Decision.RATE_LIMITED, reason="requests", retry_after_us=1, limits=BEFORE
        )

    world.stand_ins.on_preflight[team.team_id] = refuse
    assert (await ask(world, team, asked(team))).status_code == 429
    world.stand_ins.on_preflight[team.team_id] = allow
    answer = await ask(world, team, asked(team, completion_tokens=7))
    assert (answer.status_code, answer.headers[ATTEMPTS]) == (200, "1")


async def test_what_was_refused_after_a_failure_still_goes_on(world: World) -> None:
    team = world.team()
    body = asked(team, **failing(team, 1))
    first = await ask(world, team, body)
    assert first.status_code == 502

    async def refuse(_request: PreflightRequest) -> PreflightReply:
        return PreflightReply(decision=Decision.BALANCE_NEGATIVE)

    world.stand_ins.on_preflight[team.team_id] = refuse
    assert (await ask(world, team, body)).status_code == 402
    world.stand_ins.on_preflight[team.team_id] = allow
    last = await ask(world, team, body)
    assert (last.status_code, last.headers[ATTEMPTS]) == (200, "2")
    assert last.headers["x-inference-id"] == first.headers["x-inference-id"]


async def test_a_finished_stream_is_not_run_again(world: World) -> None:
    team = world.team()
    body = asked(team, more=STREAM)
    assert b"[DONE]" in (await ask(world, team, body)).content

    async def settled() -> bool:
        return code(await ask(world, team, body)) == NOT_KEPT

    # The stream's last byte comes before its key's last word: until then it is still running.
    await eventually(settled)
    assert (await ask(world, team, body)).headers["x-should-retry"] == "false"
    assert await world.hits(team) == 1


@pytest.mark.parametrize(
    "knobs", [{"drop_after_chunks": 2}, {"error_after_chunks": 1}], ids=["broken", "error event"]
)
async def test_a_stream_that_failed_goes_on(world: World, knobs: dict[str, Any]) -> None:
    team = world.team()
    body = asked(team, more=STREAM, **knobs)
    first = await ask(world, team, body)
    assert b"[DONE]" not in first.content
    seen: list[httpx.Response] = []

    async def runs_again() -> bool:
        seen.append(await ask(world, team, body))
        return seen[-1].status_code == 200

    await eventually(runs_again)
    assert seen[-1].headers["x-inference-id"] == first.headers["x-inference-id"]
    assert seen[-1].headers[ATTEMPTS] == "2"


async def test_a_client_that_left_gets_its_answer_at_the_second_asking(world: World) -> None:
    team = world.team()
    body = asked(team, gate=team.team_id)
    first = asyncio.create_task(ask(world, team, body))
    await world.witness.requests(1, marker=team.team_id)
    first.cancel()
    await asyncio.wait([first])
    await world.witness.open_gate(team.team_id)
    await world.records.one(team.team_id)
    await idle(world)
    answer = await ask(world, team, body)
    assert (answer.status_code, answer.headers[REPLAY]) == (200, "true")
    assert await world.hits(team) == 1


@pytest.mark.parametrize("key", ["", "k" * 256, "caf\xe9"], ids=["empty", "too long", "not ASCII"])
async def test_no_key(world: World, key: str) -> None:
    team = world.team()
    headers = [*team.headers.items(), ("idempotency-key", key)]
    request = httpx.Headers(headers, encoding="latin-1")
    answer = await world.http.post(CHAT, headers=request, json=asked(team))
    assert code(answer) == (400, "invalid_request_error", "invalid_idempotency_key")
    assert await world.hits(team) == 0


@pytest.fixture(scope="module")
async def own(
    module_servers: Stack, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    """A world with a short lease, small answers, and an edge and servers that may be broken."""
    folder: Path = tmp_path_factory.mktemp("edge")
    settings = {
        "QUOTAGATE_IDEMPOTENCY_LEASE_S": "2",
        "QUOTAGATE_IDEMPOTENCY_ANSWER_BYTES": "2000",
        "QUOTAGATE_HAND_OFF_S": "1",
        "QUOTAGATE_ACK_TIMEOUT_S": "0.3",
        "QUOTAGATE_IDEMPOTENCY_TIMEOUT_MS": "10000",
    }
    async with new_world(module_servers.servers, folder, settings=settings) as world:
        yield world


async def test_a_large_answer_is_not_kept_and_not_paid_twice(own: World) -> None:
    team = own.team()
    body = asked(team, text="x" * 2_000)
    assert (await ask(own, team, body)).status_code == 200
    assert code(await ask(own, team, body)) == NOT_KEPT
    assert await own.hits(team) == 1


async def test_the_key_of_a_killed_edge_goes_on(own: World) -> None:
    team = own.team()
    body = asked(team, gate=team.team_id)
    first = asyncio.create_task(ask(own, team, body))
    await own.witness.requests(1, marker=team.team_id)
    own.edge.kill()
    await own.edge.ended()
    await asyncio.wait([first])
    await own.edge.start_ready()
    await own.witness.open_gate(team.team_id)
    answers: list[httpx.Response] = []

    async def not_running() -> bool:
        answers.append(await ask(own, team, body))
        return answers[-1].status_code != 409

    await eventually(not_running)
    unknown, succeeded = await own.records.some(team.team_id, 2)
    assert (unknown.outcome, succeeded.outcome) == (Outcome.UNKNOWN, Outcome.SUCCEEDED)
    assert unknown.inference_id == succeeded.inference_id
    assert (unknown.attempt_no, succeeded.attempt_no) == (1, 2)
    assert answers[-1].headers["x-inference-id"] == unknown.inference_id
    assert all(code(answer) == RUNNING for answer in answers[:-1])


async def test_a_long_call_keeps_its_key(own: World) -> None:
    team = own.team()
    body = asked(team, gate=team.team_id)
    first = asyncio.create_task(ask(own, team, body))
    await own.witness.requests(1, marker=team.team_id)
    jetstream = own.bus.jetstream()
    subject = IDEMPOTENCY.subject_for(entry_key(team.team_id, KEY))
    seen = set()

    async def renewed_twice_over() -> bool:
        seen.add((await jetstream.get_msg(IDEMPOTENCY.stream, subject=subject, direct=True)).seq)
        return len(seen) > 6

    # Each renewal is a third of the lease after the one before: this is two leases long.
    await eventually(renewed_twice_over)
    assert code(await ask(own, team, body)) == RUNNING
    await own.witness.open_gate(team.team_id)
    assert (await first).status_code == 200
    assert (await ask(own, team, body)).headers[REPLAY] == "true"
    assert await own.hits(team) == 1


@contextlib.asynccontextmanager
async def refusing(world: World, stream: str) -> AsyncIterator[None]:
    """Let a stream refuse everything, as it does when it is full."""
    jetstream = world.bus.jetstream()
    config: StreamConfig = (await jetstream.stream_info(stream)).config
    await jetstream.update_stream(replace(config, max_msg_size=1))
    try:
        yield
    finally:
        await jetstream.update_stream(config)


async def test_a_full_store_refuses_keys_and_nothing_else(own: World) -> None:
    team = own.team()
    async with refusing(own, IDEMPOTENCY.stream):
        answer = await ask(own, team, asked(team))
        assert code(answer) == (503, "server_error", "service_unavailable")
        assert answer.headers["retry-after"] == "1"
        assert await own.hits(team) == 0
        assert own.stand_ins.preflights_of(team.team_id) == []
        assert (await own.ask(team)).status_code == 200


async def test_an_answer_that_the_store_did_not_take_is_owed(own: World) -> None:
    team = own.team()
    body = asked(team, gate=team.team_id)
    first = asyncio.create_task(ask(own, team, body))
    await own.witness.requests(1, marker=team.team_id)
    async with refusing(own, IDEMPOTENCY.stream):
        await own.witness.open_gate(team.team_id)
        assert (await first).status_code == 200
        assert await own.edge.metric("quotagate_idempotency_owed") == 1

    async def paid() -> bool:
        return await own.edge.metric("quotagate_idempotency_owed") == 0

    await eventually(paid)
    answer = await ask(own, team, body)
    assert (answer.status_code, answer.headers[REPLAY]) == (200, "true")
    assert await own.hits(team) == 1


async def test_a_success_that_was_not_recorded_is_recorded_and_replayed(own: World) -> None:
    team = own.team()
    body = asked(team, completion_tokens=5)
    async with refusing(own, INFERENCE_RECORDS.name):
        first = await ask(own, team, body)
        assert code(first) == (503, "server_error", "service_unavailable")
        # Nor is the replay told before the record is where it belongs.
        again = await ask(own, team, body)
        assert code(again) == (503, "server_error", "service_unavailable")
        assert REPLAY not in again.headers
    answer = await ask(own, team, body)
    assert (answer.status_code, answer.headers[REPLAY]) == (200, "true")
    assert answer.headers["x-inference-id"] == first.headers["x-inference-id"]
    record = await own.records.one(team.team_id)
    assert (record.outcome, record.attempt_no) == (Outcome.SUCCEEDED, 1)
    assert await own.hits(team) == 1
