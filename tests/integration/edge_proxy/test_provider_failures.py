"""What a client sees of a provider's failure, and the record that every attempt leaves."""

import gzip
from typing import Any

import pytest
from integration.edge_proxy.raw_provider import Conversation, RawProvider
from integration.edge_proxy.world import World

from contracts.inference import Outcome, UsageSource

SOURCE = "x-quotagate-error-source"
STREAM = {"stream": True}


async def check_record(world: World, team_id: str, status_code: int | None) -> None:
    record = await world.records.one(team_id)
    assert (record.outcome, record.status_code) == (Outcome.FAILED, status_code)
    assert (record.usage, record.usage_source) == (None, UsageSource.MISSING)
    assert record.finished_at_us is not None
    assert world.stand_ins.postflights_of(team_id) == []


@pytest.mark.parametrize("more", [{}, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("status", "shown", "code"),
    [
        (401, 502, "provider_auth_failed"),
        (402, 502, "provider_quota_exhausted"),
        (403, 502, "provider_auth_failed"),
        (408, 504, "provider_timeout"),
        (500, 502, "provider_failed"),
        (503, 502, "provider_failed"),
        (504, 504, "provider_timeout"),
        (529, 502, "provider_failed"),
    ],
)
async def test_failures_that_are_not_the_clients(
    world: World, more: dict[str, Any], status: int, shown: int, code: str
) -> None:
    team = world.team()
    answer = await world.ask(team, more=more, status=status, error_message="their own words")
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["code"]) == (shown, "upstream_error", code)
    assert answer.headers[SOURCE] == "upstream"
    assert "their own words" not in answer.text
    assert "x-inference-id" in answer.headers
    await check_record(world, team.team_id, status)


@pytest.mark.parametrize("more", [{}, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize("status", [400, 404, 409, 422])
async def test_what_the_provider_says_of_the_request(
    world: World, more: dict[str, Any], status: int
) -> None:
    team = world.team()
    answer = await world.ask(team, more=more, status=status, error_message="their own words")
    assert answer.status_code == status
    assert answer.json()["error"]["message"] == "their own words"
    assert answer.headers[SOURCE] == "upstream"
    await check_record(world, team.team_id, status)


async def test_the_providers_own_rate_limit(world: World) -> None:
    team = world.team()
    answer = await world.ask(team, status=429, retry_after_s=7, retry_after_ms=6_500)
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "7"
    assert answer.headers["retry-after-ms"] == "6500"
    assert answer.headers[SOURCE] == "upstream"
    assert "x-ratelimit-limit-requests" not in answer.headers
    assert "x-ratelimit-reason" not in answer.headers
    await check_record(world, team.team_id, 429)


async def test_the_providers_empty_account_is_not_the_clients(world: World) -> None:
    team = world.team()
    answer = await world.ask(team, status=429, error_code="insufficient_quota")
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "provider_quota_exhausted")
    assert answer.headers["x-should-retry"] == "false"


async def test_a_wrong_key_of_ours(world: World) -> None:
    team = world.team()
    answer = await world.ask(team, model="locked")
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "provider_auth_failed")
    await check_record(world, team.team_id, 401)


@pytest.mark.parametrize("error_body", ["html", "garbage", "empty"])
@pytest.mark.parametrize(
    ("status", "shown", "code"),
    [
        (200, 502, "provider_invalid_answer"),
        (400, 400, "provider_refused"),
        (429, 429, "provider_rate_limited"),
        (500, 502, "provider_failed"),
    ],
)
async def test_bodies_nobody_can_read(
    world: World, error_body: str, status: int, shown: int, code: str
) -> None:
    team = world.team()
    answer = await world.ask(team, status=status, error_body=error_body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (shown, code)
    assert answer.headers[SOURCE] == "upstream"
    await check_record(world, team.team_id, status)


@pytest.mark.parametrize(
    ("model", "knobs", "shown", "code", "status"),
    [
        pytest.param("nowhere", {}, 502, "provider_unreachable", None, id="nobody listens"),
        pytest.param("plain", {"drop": True}, 502, "provider_disconnected", None, id="closed"),
        pytest.param(
            "plain", {"drop": True, "reset": True}, 502, "provider_disconnected", None, id="reset"
        ),
        pytest.param("plain", {"half_frame": True}, 502, "provider_disconnected", 200, id="half"),
        pytest.param("impatient", {"hang": True}, 504, "provider_timeout", None, id="no answer"),
        pytest.param("brief", {"hang": True}, 504, "provider_timeout", None, id="total"),
    ],
)
async def test_no_answer(
    world: World, model: str, knobs: dict[str, Any], shown: int, code: str, status: int | None
) -> None:
    team = world.team()
    answer = await world.ask(team, model=model, **knobs)
    assert (answer.status_code, answer.json()["error"]["code"]) == (shown, code)
    await check_record(world, team.team_id, status)


async def test_the_idle_time_out_counts_from_piece_to_piece(world: World, raw: RawProvider) -> None:
    team = world.team()

    async def script(conversation: Conversation) -> None:
        await conversation.say(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"
        )
        await conversation.until_left()

    raw.script = script
    answer = await world.ask(team, model="raw-impatient")
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "provider_timeout")
    await check_record(world, team.team_id, 200)


@pytest.mark.parametrize(
    ("said", "code", "status"),
    [
        pytest.param(b"not HTTP at all\r\n\r\n", "provider_disconnected", None, id="no HTTP"),
        pytest.param(
            b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
            "provider_invalid_answer",
            302,
            id="a redirect is not followed",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ncontent-length: 400000\r\n\r\n" + b"x" * 400_000,
            "provider_answer_too_large",
            200,
            id="more than fits",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\nxx",
            "provider_disconnected",
            200,
            id="compressed, it says",
        ),
    ],
)
async def test_bytes_that_make_no_answer(
    world: World, raw: RawProvider, said: bytes, code: str, status: int | None
) -> None:
    team = world.team()

    async def script(conversation: Conversation) -> None:
        await conversation.say(said)

    raw.script = script
    answer = await world.ask(team, model="raw")
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, code)
    await check_record(world, team.team_id, status)


async def test_a_small_body_that_grows_without_end(world: World, raw: RawProvider) -> None:
    team = world.team()
    bomb = gzip.compress(b"\0" * 50_000_000)

    async def script(conversation: Conversation) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
        await conversation.say(head % len(bomb) + bomb)

    raw.script = script
    answer = await world.ask(team, model="raw")
    assert answer.json()["error"]["code"] == "provider_answer_too_large"
    await check_record(world, team.team_id, 200)


async def test_nothing_is_asked_twice(world: World) -> None:
    team = world.team()
    await world.ask(team, status=500)
    await world.ask(team, drop=True)
    assert await world.hits(team) == 2
    assert len(await world.records.some(team.team_id, 2)) == 2
    assert len({record.inference_id for record in await world.records.of(team.team_id)}) == 2
