"""An answer that isn't a stream: what it carries, and in which order things happen before it."""

import asyncio

import httpx
import pytest
from integration.edge_proxy.stand_ins import POLICY, Latch
from integration.edge_proxy.world import CHAT, World, asked

from contracts.admission import PostflightReply, PostflightRequest
from contracts.errors import ErrorCode
from contracts.inference import Outcome, UsageSource
from contracts.usage import Usage
from kit.bus.serving import ReplyError

AFTER_HEADERS = {
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "0",
    "x-ratelimit-reset-requests": "900ms",
    "x-ratelimit-limit-tokens": "60000",
    "x-ratelimit-remaining-tokens": "59000",
    "x-ratelimit-reset-tokens": "1s",
}
SECRET_NAMES = (
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "x-auth-token",
    "x-goog-api-key",
    "openai-organization",
    "openai-project",
    "x-amz-security-token",
    "x-forwarded-for",
    "x-real-ip",
    "idempotency-key",
    "x-custom",
)


def limit_headers(headers: httpx.Headers) -> dict[str, str]:
    return {name: value for name, value in headers.items() if "ratelimit" in name}


async def test_an_answer_and_its_record(world: World) -> None:
    team = world.team()
    answer = await world.ask(
        team, prompt_tokens=10_000, cached_tokens=8_000, completion_tokens=136, reasoning_tokens=31
    )
    assert answer.status_code == 200
    assert answer.json()["usage"]["prompt_tokens"] == 10_000
    assert limit_headers(answer.headers) == AFTER_HEADERS

    record = await world.records.one(team.team_id)
    (charged,) = world.stand_ins.postflights_of(team.team_id)
    (asked_for,) = world.stand_ins.preflights_of(team.team_id)
    seen = await world.witness.one(marker=team.team_id)
    usage = Usage(input=2_000, cache_read=8_000, output=136)
    assert (charged.usage, charged.policy, charged.price.price_id) == (usage, POLICY, "fake-plain")
    assert record.inference_id == answer.headers["x-inference-id"] == asked_for.inference_id
    assert record.team_id == team.team_id
    assert record.api_key_id == asked_for.key_id == team.key_id
    assert (record.attempt_no, record.outcome) == (1, Outcome.SUCCEEDED)
    assert (record.provider, record.model_asked, record.model_served) == ("fake", "plain", "plain")
    assert (record.price_id, record.tier_id) == ("fake-plain", "tier_x")
    assert (record.usage, record.usage_source) == (usage, UsageSource.PROVIDER)
    assert record.usage_reported is not None
    assert '"reasoning_tokens":31' in record.usage_reported
    assert record.provider_request_id == answer.headers["x-request-id"] == seen["request_id"]
    assert (record.streaming, record.client_gone, record.status_code) == (False, False, 200)
    assert record.first_byte_at_us is not None
    assert record.finished_at_us is not None
    assert record.started_at_us <= record.first_byte_at_us <= record.finished_at_us
    assert record.endpoint == CHAT


async def test_the_answer_waits_for_the_charge_and_the_record(world: World) -> None:
    team, latch = world.team(), Latch()
    world.stand_ins.on_postflight[team.team_id] = latch.postflight
    answer = asyncio.create_task(world.ask(team))
    await latch.reached.wait()
    # The provider has answered and the charge isn't through: no record yet, and no answer.
    assert (await world.witness.one(marker=team.team_id))["outcome"] == "completed"
    assert await world.records.of(team.team_id) == []
    assert not answer.done()
    latch.open.set()
    assert (await answer).status_code == 200
    assert len(await world.records.of(team.team_id)) == 1


async def test_a_charge_that_fails_costs_the_client_nothing(world: World) -> None:
    team = world.team()

    async def fail(_request: PostflightRequest) -> PostflightReply:
        raise ReplyError(ErrorCode.STORE_UNAVAILABLE)

    world.stand_ins.on_postflight[team.team_id] = fail
    answer = await world.ask(team)
    assert answer.status_code == 200
    assert limit_headers(answer.headers) == {}
    assert len(world.stand_ins.postflights_of(team.team_id)) == 1
    assert (await world.records.one(team.team_id)).usage is not None


@pytest.mark.parametrize(
    ("usage_shape", "usage", "source"),
    [
        pytest.param("absent", None, UsageSource.MISSING, id="absent"),
        pytest.param("null", None, UsageSource.MISSING, id="null"),
        pytest.param("string", None, UsageSource.MISSING, id="text"),
        pytest.param("absurd", 10**10, UsageSource.PROVIDER, id="absurd"),
    ],
)
async def test_usage_that_cannot_be_charged(
    world: World, usage_shape: str, usage: int | None, source: UsageSource
) -> None:
    team = world.team()
    answer = await world.ask(team, usage_shape=usage_shape)
    assert answer.status_code == 200
    assert limit_headers(answer.headers) == {}
    assert world.stand_ins.postflights_of(team.team_id) == []
    record = await world.records.one(team.team_id)
    assert (record.outcome, record.usage_source) == (Outcome.SUCCEEDED, source)
    assert (record.usage and record.usage.output) == usage
    assert (record.usage_reported is None) == (usage_shape in ("absent", "null"))


async def test_the_deployments_name_goes_out_and_the_body_is_the_clients(world: World) -> None:
    team = world.team()
    answer = await world.ask(team, model="renamed")
    assert answer.json()["model"] == "the-deployments-name"
    record = await world.records.one(team.team_id)
    assert (record.model_asked, record.model_sent) == ("renamed", "the-deployments-name")
    assert record.price_id == "fake-the-deployments-name"


async def test_neither_side_sees_the_others_secrets(world: World) -> None:
    team = world.team()
    secrets = dict.fromkeys(SECRET_NAMES, "a secret")
    headers = secrets | {"cookie": "session=1"} | team.headers
    answer = await world.http.post(
        CHAT,
        headers=headers,
        json=asked(team, headers={"set-cookie": "a=b", "x-ratelimit-limit-requests": "9999"}),
    )
    assert answer.status_code == 200
    seen = dict((await world.witness.one(marker=team.team_id))["headers"])
    assert not set(SECRET_NAMES) & set(seen)
    assert "cookie" not in seen
    assert team.key not in str(seen)
    assert "set-cookie" not in answer.headers
    assert answer.headers["x-ratelimit-limit-requests"] == "60"


async def test_a_trace_goes_on_into_the_record(world: World) -> None:
    team = world.team()
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    headers = team.headers | {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
    await world.http.post(CHAT, headers=headers, json=asked(team))
    assert (await world.records.one(team.team_id)).trace_id == trace


async def test_an_answer_compressed_unasked_is_read_and_metered(world: World) -> None:
    team = world.team()
    answer = await world.ask(team, gzip_unasked=True, completion_tokens=7)
    assert answer.json()["usage"]["completion_tokens"] == 7
    usage = (await world.records.one(team.team_id)).usage
    assert usage is not None
    assert usage.output == 7


async def test_a_client_that_leaves_is_charged_all_the_same(world: World) -> None:
    team = world.team()
    asking = asyncio.create_task(world.ask(team, gate=team.team_id, completion_tokens=50))
    await world.witness.requests(1, marker=team.team_id)
    asking.cancel()
    await asyncio.wait([asking])
    await world.witness.open_gate(team.team_id)
    record = await world.records.one(team.team_id)
    assert record.usage is not None
    assert (record.outcome, record.usage.output) == (Outcome.SUCCEEDED, 50)
    assert record.client_gone
    assert len(world.stand_ins.postflights_of(team.team_id)) == 1


async def test_models_are_those_of_the_key_and_free(world: World) -> None:
    everything, some = world.team(), world.team(allowed_models=("renamed", "not-a-route"))
    listed = (await world.http.get("/v1/models", headers=everything.headers)).json()
    assert {"plain", "renamed", "nowhere"} < {row["id"] for row in listed["data"]}
    listed = (await world.http.get("/v1/models", headers=some.headers)).json()
    assert listed == {
        "object": "list",
        "data": [{"id": "renamed", "object": "model", "created": 0, "owned_by": "fake"}],
    }
    assert world.stand_ins.preflights_of(some.team_id) == []
    assert (await world.http.get("/v1/models")).status_code == 401
