"""A response is fetched again: by its team alone, free of charge."""

from typing import Any

import openai
import pytest
from integration.edge_proxy.calls import BODIES, RESPONSES, events, post
from integration.edge_proxy.world import Team, World
from openai import AsyncOpenAI

from contracts.inference import Outcome


def client(world: World, team: Team) -> AsyncOpenAI:
    return AsyncOpenAI(api_key=team.key, base_url=f"{world.edge.url}/v1", max_retries=0)


async def respond(world: World, *, stream: bool = False, **body: Any) -> tuple[Team, str]:
    """Have a team get a response; return its id."""
    team, answer = await post(world, RESPONSES, more={"stream": stream, **body})
    whole = events(answer.content)[-1]["response"] if stream else answer.json()
    return team, whole["id"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_response_is_fetched_again_without_a_second_charge(
    world: World, stream: bool
) -> None:
    team, response_id = await respond(world, stream=stream)
    async with client(world, team) as openai_client:
        for _ in range(3):
            again = await openai_client.responses.retrieve(response_id)
            assert (again.id, again.status) == (response_id, "completed")
            assert again.output_text == "Hello from the fake provider."
    assert len(await world.records.of(team.team_id)) == 1
    assert len(world.stand_ins.preflights_of(team.team_id)) == 1
    assert len(world.stand_ins.postflights_of(team.team_id)) == 1


async def test_a_response_that_failed_is_there_too(world: World) -> None:
    team, answer = await post(world, RESPONSES, more={"stream": True}, drop_after_chunks=2)
    response_id = events(answer.content)[0]["response"]["id"]
    assert (await world.records.one(team.team_id)).outcome is Outcome.ABORTED
    fetched = await world.http.get(f"{RESPONSES}/{response_id}", headers=team.headers)
    # The provider was asked, whatever it says of a response that broke off.
    is_theirs = fetched.headers.get("x-quotagate-error-source") == "upstream"
    assert is_theirs or fetched.status_code == 200


async def test_another_team_finds_nothing(world: World) -> None:
    _, response_id = await respond(world)
    async with client(world, world.team()) as stranger:
        with pytest.raises(openai.NotFoundError) as caught:
            await stranger.responses.retrieve(response_id)
    assert caught.value.response.json()["error"]["code"] == "response_not_found"
    assert "x-quotagate-error-source" not in caught.value.response.headers


async def test_a_key_that_may_not_use_the_model_may_not_read_its_answers(world: World) -> None:
    team, response_id = await respond(world)
    narrow = world.team(team_id=team.team_id, allowed_models=("renamed",))
    answer = await world.http.get(f"{RESPONSES}/{response_id}", headers=narrow.headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "model_not_allowed")


async def test_a_response_that_is_not_stored_is_not_remembered(world: World) -> None:
    team, response_id = await respond(world, store=False)
    answer = await world.http.get(f"{RESPONSES}/{response_id}", headers=team.headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "response_not_found")


@pytest.mark.parametrize(
    "response_id",
    ["resp_unknown", "resp_x%2F..%2Fmodels", "resp_%3Fx=1", "%2e%2e", "r" * 201, "resp_\u00fc"],
)
async def test_what_is_no_id_of_ours_reaches_no_provider(world: World, response_id: str) -> None:
    team = world.team()
    before = (await world.witness.counts())["requests"]
    answer = await world.http.get(f"{RESPONSES}/{response_id}", headers=team.headers)
    assert answer.status_code == 404
    assert (await world.witness.counts())["requests"] == before


async def test_without_a_key_nothing_is_told(world: World) -> None:
    _, response_id = await respond(world)
    answer = await world.http.get(f"{RESPONSES}/{response_id}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")


@pytest.mark.parametrize(
    ("method", "path"),
    [("DELETE", ""), ("POST", "/cancel"), ("GET", "/input_items")],
    ids=["delete", "cancel", "input items"],
)
async def test_nothing_else_can_be_done_with_it(world: World, method: str, path: str) -> None:
    team, response_id = await respond(world)
    answer = await world.http.request(
        method, f"{RESPONSES}/{response_id}{path}", headers=team.headers
    )
    assert answer.status_code in (404, 405)
    assert answer.json()["error"]["type"] == "invalid_request_error"


async def test_secrets_stay_here_on_this_way_too(world: World) -> None:
    team, response_id = await respond(world)
    headers = team.headers | {"cookie": "a=b", "x-custom": "a secret"}
    answer = await world.http.get(f"{RESPONSES}/{response_id}", headers=headers)
    assert answer.status_code == 200
    assert answer.json()["model"] == BODIES[RESPONSES]["model"]
    assert "set-cookie" not in answer.headers
    assert not [name for name in answer.headers if "ratelimit" in name]
