"""What fails, and what happens then: nothing hangs, nothing is lost, and it recovers by itself."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from e2e.operator import MODEL, Customer, Operator
from integration.fake_provider.witness import Witness

from fake_provider.behaviour import fake
from kit.ids import new_id
from quotagate.stack import Stack

CHAT = "/v1/chat/completions"
# Everything that is part of an answer to a client who was not admitted.
_LIMIT_HEADERS = ("x-ratelimit-limit-requests", "x-ratelimit-reset-tokens", "retry-after-ms")


@pytest.fixture(scope="module")
async def team(operator: Operator) -> Customer:
    return await operator.open_team(credit_usd="100")


@pytest.fixture
async def http(stack: Stack, team: Customer) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=stack.url("edge-proxy"),
        headers={"authorization": f"Bearer {team.key}"},
        timeout=30,
    ) as client:
        yield client


@contextlib.contextmanager
def _frozen(stack: Stack, name: str) -> Iterator[None]:
    stack.signal(name, "STOP")
    try:
        yield
    finally:
        stack.signal(name, "CONT")


@contextlib.contextmanager
def _stopped(stack: Stack, *names: str) -> Iterator[None]:
    for name in names:
        stack.stop(name)
    try:
        yield
    finally:
        for name in names:
            stack.start(name)


async def _call(http: httpx.AsyncClient, marker: str = "", **orders: object) -> httpx.Response:
    metadata = fake(**({"marker": marker} if marker else {}), **orders)  # type: ignore[arg-type] # a test's own orders
    return await http.post(
        CHAT,
        json={
            "model": MODEL,
            "messages": [{"role": "user", "content": "hi"}],
            "metadata": metadata,
        },
    )


async def _answers_again(http: httpx.AsyncClient) -> None:
    async with asyncio.timeout(15):
        while (await _call(http)).status_code != 200:
            await asyncio.sleep(0.05)


def _is_unavailable(response: httpx.Response) -> None:
    assert response.status_code == 503, response.text
    assert response.headers["retry-after"] == "1"
    assert response.json()["error"]["type"] == "server_error"
    assert response.json()["error"]["code"] == "service_unavailable"
    assert not [name for name in _LIMIT_HEADERS if name in response.headers]


async def test_a_frozen_store_is_503_and_no_provider_is_called(
    stack: Stack, http: httpx.AsyncClient, witness: Witness
) -> None:
    await _answers_again(http)
    marker = new_id()
    with _frozen(stack, "valkey"):
        for _ in range(3):
            response = await _call(http, marker)
            _is_unavailable(response)
            assert (
                response.json()["error"]["message"]
                == "Rate limit check is temporarily unavailable."
            )
    await _answers_again(http)
    assert (await witness.counts(marker=marker))["requests"] == 0


async def test_without_admission_it_is_503_at_once(
    stack: Stack, http: httpx.AsyncClient, witness: Witness
) -> None:
    await _answers_again(http)
    marker = new_id()
    with _stopped(stack, "admission"):
        _is_unavailable(await _call(http, marker))
    await _answers_again(http)
    assert (await witness.counts(marker=marker))["requests"] == 0


@pytest.mark.parametrize(
    "names", [("tier-cache",), ("postgres",), ("control-plane",), ("settlement",)]
)
async def test_a_cached_team_goes_on_without(
    stack: Stack, http: httpx.AsyncClient, names: tuple[str, ...]
) -> None:
    await _answers_again(http)
    with _stopped(stack, *names):
        assert (await _call(http)).status_code == 200


async def test_a_new_team_is_503_without_tier_cache(stack: Stack, operator: Operator) -> None:
    team = await operator.open_team()
    async with httpx.AsyncClient(
        base_url=stack.url("edge-proxy"), headers={"authorization": f"Bearer {team.key}"}
    ) as http:
        with _stopped(stack, "tier-cache"):
            assert (await _call(http)).status_code == 503
        await _answers_again(http)


async def test_a_bus_that_leaves_during_a_call_loses_no_record(
    stack: Stack, operator: Operator, witness: Witness
) -> None:
    """The provider answered, nobody acknowledges: 503 for the client, the record arrives later."""
    team, marker = await operator.open_team(), new_id()
    async with httpx.AsyncClient(
        base_url=stack.url("edge-proxy"),
        headers={"authorization": f"Bearer {team.key}"},
        timeout=60,
    ) as http:
        call = asyncio.create_task(_call(http, marker, gate=marker, completion_tokens=7))
        await witness.requests(at_least=1, marker=marker)
        with _stopped(stack, "nats"):
            await witness.open_gate(marker)
            _is_unavailable(await call)
            # While the hand-off fails, new work is refused before a provider sees it.
            _is_unavailable(await _call(http, marker))
        (record,) = await operator.settled(team.team_id)
        assert (record["outcome"], record["usage"]["output"]) == ("succeeded", 7)
        assert (await witness.counts(marker=marker))["requests"] == 1
        await _answers_again(http)


async def test_a_killed_edge_leaves_unknown_spend_and_not_nothing(
    stack: Stack, operator: Operator, witness: Witness
) -> None:
    team, marker = await operator.open_team(), new_id()
    async with httpx.AsyncClient(
        base_url=stack.url("edge-proxy"), headers={"authorization": f"Bearer {team.key}"}
    ) as http:
        call = asyncio.create_task(_call(http, marker, gate=marker))
        await witness.requests(at_least=1, marker=marker)
        await asyncio.to_thread(stack.kill, "edge-proxy")
        with pytest.raises(httpx.HTTPError):
            await call
    await asyncio.to_thread(stack.wait_ready, "edge-proxy")
    (record,) = await operator.settled(team.team_id)
    assert (record["state"], record["outcome"]) == ("UNBILLABLE", "unknown")
    assert record["usage"] is None
    await witness.open_gate(marker)


@pytest.mark.parametrize(
    "name", ["admission", "tier-cache", "settlement", "edge-proxy", "nats", "valkey"]
)
async def test_whoever_is_killed_comes_back_and_every_success_is_charged_once(
    stack: Stack, operator: Operator, name: str
) -> None:
    team = await operator.open_team(credit_usd="100")
    async with httpx.AsyncClient(
        base_url=stack.url("edge-proxy"),
        headers={"authorization": f"Bearer {team.key}"},
        timeout=30,
    ) as http:
        await _call(http)
        killing = asyncio.create_task(asyncio.to_thread(stack.kill, name))
        successes = 1
        while not killing.done():
            with contextlib.suppress(httpx.HTTPError):
                successes += (await _call(http)).status_code == 200
        await killing
        await asyncio.to_thread(stack.wait_ready, name)
        await _answers_again(http)
        successes += 1

    def all_settled(records: list[dict[str, object]]) -> bool:
        succeeded = [record for record in records if record["outcome"] == "succeeded"]
        return len(succeeded) >= successes and all(r["state"] != "PENDING" for r in records)

    records = await operator.eventually(team.team_id, all_settled)
    charged = [record["inference_id"] for record in records if record["charge"]]
    assert len(charged) == len(set(charged))
