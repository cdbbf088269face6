"""Live limits and the cached balance, as the real admission tells them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from integration.bus import Bus, bus_of
from integration.control_plane.opened import credit, open_team, refused, told, was_published
from integration.control_plane.process import running
from integration.edge_proxy.world import EdgeProcess
from integration.services import ServiceProcess
from integration.tables.rows import new_name
from redis.asyncio import Redis
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from contracts.admission import PREFLIGHT, Decision, Deployment, PreflightRequest
from contracts.errors import ErrorCode
from contracts.windows import WINDOWS, Window, WindowsRequest
from kit.bus.errors import RefusedError
from kit.clock import SystemClock
from kit.ids import new_id
from quotagate.stack import Servers


@pytest.fixture(scope="module")
async def admission(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[None]:
    folder = tmp_path_factory.mktemp("admission")
    processes = [ServiceProcess(servers, name, folder) for name in ("tier-cache", "admission")]
    try:
        for process in processes:
            await process.start_ready()
        yield
    finally:
        for process in processes:
            await process.stop()


@pytest.fixture
async def edge(servers: Servers) -> AsyncIterator[Bus]:
    async with bus_of(servers, "edge-proxy") as bus:
        yield bus


async def preflight(edge: Bus, team_id: str, model: str) -> Decision:
    request = PreflightRequest(
        team_id=team_id,
        key_id="key",
        inference_id=new_id(),
        model=model,
        deployments=(Deployment(provider="fake", model=model),),
        deadline_us=SystemClock().now_us() + 10_000_000,
    )
    decision: Decision = (await edge.ask(PREFLIGHT, request)).decision
    return decision


async def refusal(edge: Bus, team_id: str, model: str) -> ErrorCode:
    """Return why nothing is decided, once admission has loaded the model's price."""
    while True:
        try:
            decision = await preflight(edge, team_id, model)
        except RefusedError as error:
            return error.code
        assert decision is Decision.MODEL_NOT_PRICED


async def priced_model(operator: httpx.AsyncClient) -> str:
    usd = {"input": "1", "output": "1"}
    new = {"provider": "fake", "model": new_name("m"), "usd_per_million": usd}
    made = await told(operator.post("/prices", json=new), 201)
    await was_published(operator, made["event_id"])
    return str(new["model"])


@pytest.mark.usefixtures("admission")
async def test_what_a_request_moved_is_seen(operator: httpx.AsyncClient, edge: Bus) -> None:
    team_id, model = await open_team(operator), await priced_model(operator)
    await credit(operator, team_id, "3.000000000999")
    while (fresh := await told(operator.get(f"/teams/{team_id}/limits")))["limits"] is None:
        pass  # admission loads the new tier within moments of its event
    assert (fresh["tier_id"], fresh["request_tat_us"], fresh["balance_negative"]) == (None,) * 3
    # Of a team that nobody cached everything is told that its tier says.
    assert fresh["limits"]["limit_requests"] == 60
    assert [each["reason"] for each in fresh["explained"]] == ["requests", "tokens"]
    account = await told(operator.get(f"/teams/{team_id}/account"))
    assert account["cached"] is None
    assert "fills it" in account["cached_note"]

    while await preflight(edge, team_id, model) is not Decision.ALLOWED:
        pass  # admission loads the new price within moments of its event
    limits = await told(operator.get(f"/teams/{team_id}/limits"))
    assert limits["balance_negative"] is False
    assert limits["request_tat_us"] > fresh["now_us"]
    assert limits["limits"]["limit_requests"] == 60
    assert 0 <= limits["limits"]["reset_requests_us"] <= 1_000_000
    account = await told(operator.get(f"/teams/{team_id}/account"))
    assert account["balance"] == "3.000000000999"
    assert account["cached"] == {"balance": "3", "version": 1}
    assert account["cached_note"] is None


@pytest.mark.usefixtures("admission")
async def test_a_keys_own_limits_are_explained_to_its_team_alone(
    operator: httpx.AsyncClient, edge: Bus
) -> None:
    team_id, model = await open_team(operator), await priced_model(operator)
    await credit(operator, team_id)
    new = {"limits": {"rpm": 7, "request_burst": 3}}
    key = await told(operator.post(f"/teams/{team_id}/keys", json=new), 201)
    while await preflight(edge, team_id, model) is not Decision.ALLOWED:
        pass  # admission loads the new price within moments of its event
    path = f"/teams/{team_id}/limits"
    told_of_key = await told(operator.get(path, params={"key_id": key["key_id"]}))
    (own,) = [each for each in told_of_key["explained"] if each["scope"] == "key"]
    assert (own["reason"], own["limit"], own["remaining"]) == ("key_requests", 7, 4)
    told_of_team = await told(operator.get(path))
    assert [each["scope"] for each in told_of_team["explained"]] == ["team", "team"]

    other = await open_team(operator)
    for team, asked in ((other, key["key_id"]), (team_id, "nobody")):
        get = operator.get(f"/teams/{team}/limits", params={"key_id": asked})
        await refused(get, 404, "key_not_found")


POLICIES = """
[policies.Chat]
endpoints = ["POST /v1/chat/completions"]
windows = [
    { label = "Minute", limit = 2, seconds = 60 },
    { label = "Day", limit = 9, seconds = 86400 },
]
"""


@pytest.fixture
async def policies(servers: Servers, admission: None, tmp_path: Path) -> AsyncIterator[None]:
    """An edge with endpoint policies is there."""
    file = tmp_path / "policies.toml"
    await asyncio.to_thread(file.write_text, POLICIES, encoding="utf-8")
    settings = {"QUOTAGATE_POLICIES_FILE": str(file)}
    nowhere = {"fake": "http://127.0.0.1:1", "raw": "http://127.0.0.1:1"}
    process = EdgeProcess(servers, tmp_path, nowhere, settings)
    try:
        await process.start_ready()
        yield
    finally:
        await process.stop()


@pytest.mark.usefixtures("policies")
async def test_an_endpoints_windows_are_explained_and_nothing_moves(
    operator: httpx.AsyncClient, edge: Bus, servers: Servers
) -> None:
    team_id = await open_team(operator)
    new = {"limits": {"rpm": 60_000_000, "request_burst": 1_000}}
    key = (await told(operator.post(f"/teams/{team_id}/keys", json=new), 201))["key_id"]
    chat = {"key_id": key, "endpoint": "POST /v1/chat/completions"}
    path = f"/teams/{team_id}/limits"
    fresh = await told(operator.get(path, params=chat))
    assert [each["window"] for each in fresh["explained"][-2:]] == ["Chat-Minute", "Chat-Day"]
    assert [each["used"] for each in fresh["explained"][-2:]] == [0, 0]

    windows = tuple(
        Window(group="Chat", label=label, limit=limit, length_us=seconds * 1_000_000)
        for label, limit, seconds in (("Minute", 2, 60), ("Day", 9, 86_400))
    )
    for _ in range(2):
        asked = WindowsRequest(
            windows=windows,
            deadline_us=SystemClock().now_us() + 10_000_000,
            team_id=team_id,
            key_id=key,
        )
        assert (await edge.ask(WINDOWS, asked)).refusal is None
    redis: Redis = Redis.from_url(servers.redis_url)
    names = sorted([name async for name in redis.scan_iter(f"quota:{{{team_id}}}:window:*")])
    before = [(await redis.dump(name), await redis.pexpiretime(name)) for name in names]
    told_twice = [await told(operator.get(path, params=chat)) for _ in range(2)]
    after = [(await redis.dump(name), await redis.pexpiretime(name)) for name in names]
    await redis.aclose()
    assert len(names) == 2
    assert before == after
    for limits in told_twice:
        minute, day = limits["explained"][-2:]
        assert (minute["reason"], minute["scope"], minute["limit"]) == ("endpoint", "key", 2)
        assert (minute["used"], minute["remaining"]) == (2, 0)
        assert 0 < minute["retry_after_us"] <= minute["reset_us"] <= 60_000_000
        assert (day["used"], day["remaining"], day["retry_after_us"]) == (2, 7, 0)
        assert 86_000_000_000 < day["reset_us"] <= 86_400_000_000
        assert limits["decides"] == "endpoint"

    lists = {"key_id": key, "endpoint": "GET /v1/models"}
    assert (await told(operator.get(path, params=lists)))["decides"] is None
    await refused(
        operator.get(path, params={"key_id": key, "endpoint": "GET /nothing"}),
        422, "invalid_value", "endpoint",
    )  # fmt: skip
    await refused(
        operator.get(path, params={"endpoint": "GET /v1/models"}), 422, "invalid_value", "endpoint"
    )


@pytest.mark.usefixtures("admission")
async def test_without_an_edge_an_endpoints_windows_are_unknown(
    operator: httpx.AsyncClient,
) -> None:
    team_id = await open_team(operator)
    key = (await told(operator.post(f"/teams/{team_id}/keys", json={}), 201))["key_id"]
    asked = {"key_id": key, "endpoint": "GET /v1/models"}
    answer = operator.get(f"/teams/{team_id}/limits", params=asked)
    assert "edge" in await refused(answer, 503, "service_unavailable")


@pytest.mark.usefixtures("admission")
async def test_what_of_a_tier_or_a_key_cannot_be_is_told(
    operator: httpx.AsyncClient, owner: AsyncEngine, edge: Bus
) -> None:
    team_id, model = await open_team(operator), await priced_model(operator)
    await credit(operator, team_id)
    key = await told(operator.post(f"/teams/{team_id}/keys", json={}), 201)
    async with owner.begin() as connection:
        spoil = 'UPDATE api_key SET limits = \'{"rpm": "many"}\' WHERE key_id = :id'
        await connection.execute(text(spoil), {"id": key["key_id"]})
    path = f"/teams/{team_id}/limits"
    limits = await told(operator.get(path, params={"key_id": key["key_id"]}))
    assert "rpm" in limits["problem"]
    assert (await told(operator.get(path)))["problem"] is None

    tier_id = (await told(operator.get(f"/teams/{team_id}")))["tier_id"]
    async with owner.begin() as connection:
        spoil = 'UPDATE tier SET limits = \'{"input_tpm": "many"}\' WHERE tier_id = :id'
        await connection.execute(text(spoil), {"id": tier_id})
    other = await open_team(operator)  # its tier's event has all policies loaded again
    # The control plane and admission each hear of it by themselves.
    while (limits := await told(operator.get(path)))["problem"] is None or limits["limits"]:
        pass
    assert tier_id in limits["problem"]
    assert "input_tpm" in limits["problem"]
    assert (limits["limits"], limits["explained"]) == (None, [])
    assert await refusal(edge, team_id, model) is ErrorCode.IMPOSSIBLE_LIMITS
    await credit(operator, other)
    while await preflight(edge, other, model) is not Decision.ALLOWED:
        pass

    await told(operator.put(f"/tiers/{tier_id}", json={"rpm": 60, "tpm": 60_000}))
    while (await told(operator.get(path)))["problem"] is not None:
        pass
    assert await preflight(edge, team_id, model) is Decision.ALLOWED


async def test_without_admission_limits_are_unknown_and_the_account_is_not(
    servers: Servers, tmp_path: Path, operator: httpx.AsyncClient
) -> None:
    team_id = await open_team(operator)
    await credit(operator, team_id, "7")
    nowhere = {"QUOTAGATE_NATS_URL": "nats://127.0.0.1:1"}
    async with running(servers, tmp_path, nowhere) as cut_off, cut_off.operator() as alone:
        await cut_off.becomes_unready("nats")
        answer = await alone.get(f"/teams/{team_id}/limits")
        assert answer.headers["retry-after"] == "1"
        await refused(alone.get(f"/teams/{team_id}/limits"), 503, "service_unavailable")
        account = await told(alone.get(f"/teams/{team_id}/account"))
    assert (account["balance"], account["cached"]) == ("7", None)
    assert "Admission" in account["cached_note"]
