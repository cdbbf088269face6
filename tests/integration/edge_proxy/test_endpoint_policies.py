"""Endpoint policies at a real edge: what it asks, what clients are told, and what costs nothing."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from integration.bus import bus_of
from integration.edge_proxy.stand_ins import allow, let_in
from integration.edge_proxy.world import CHAT, Team, World, asked
from integration.edge_proxy.world import world as new_world
from msgspec.structs import replace

from contracts.admission import Decision, PreflightReply, PreflightRequest
from contracts.errors import ErrorCode
from contracts.limits import LimitReason, LimitScope, Refusal
from contracts.windows import (
    ENDPOINT_WINDOWS,
    EndpointWindowsRequest,
    WindowsReply,
    WindowsRequest,
    WindowUse,
)
from kit.bus.serving import ReplyError
from kit.keys import new_key
from quotagate.stack import Stack

POLICIES = """
[policies.Chat]
endpoints = ["POST /v1/chat/completions"]
windows = [
    { label = "Minute", limit = 100, seconds = 60 },
    { label = "Day", limit = 10_000, seconds = 86_400 },
]
address_windows = [{ label = "Minute", limit = 20, seconds = 60 }]

[policies.Lists]
endpoints = ["GET /v1/models", "GET /v1/responses/{response_id}"]
windows = [{ label = "Minute", limit = 5, seconds = 60 }]

[policies.Strict]
endpoints = ["GET /v1/models/{model}"]
windows = [{ label = "Hour", limit = 7, seconds = 3600 }]
on_store_failure = "closed"

[policies.Sealed]
endpoints = ["POST /v1/responses"]
windows = [{ label = "Hour", limit = 7, seconds = 3600 }]
on_store_failure = "closed"

[policies.Tried]
endpoints = ["POST /v1/completions"]
windows = [{ label = "Minute", limit = 1, seconds = 60 }]
shadow = true
"""
PROXY = {"x-forwarded-for": "198.51.100.1, 203.0.113.7"}
WAIT_US = 12_000_001


@pytest.fixture(scope="module")
async def world(
    module_servers: Stack, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("policies")
    file = folder / "policies.toml"
    file.write_text(POLICIES, encoding="utf-8")
    settings = {
        "QUOTAGATE_POLICIES_FILE": str(file),
        "QUOTAGATE_TRUSTED_PROXIES": "127.0.0.0/8",
        "QUOTAGATE_MAX_AUTH_FAILURES_PER_ADDRESS": "0",
    }
    async with new_world(module_servers.servers, folder, settings=settings) as world:
        yield world
        assert "Traceback" not in world.edge.log(), world.edge.log()


@pytest.fixture(autouse=True)
def everybody_may_come(world: World) -> Iterator[None]:
    world.stand_ins.windows.clear()
    yield
    world.stand_ins.on_windows = let_in


async def refuse(request: WindowsRequest) -> WindowsReply:
    (window,) = request.windows
    refusal = Refusal(
        reason=LimitReason.ENDPOINT,
        scope=LimitScope.KEY if request.address is None else LimitScope.ADDRESS,
        limit=window.limit,
        used=window.limit,
        resets_at_us=1_788_436_860_000_000,
        window=f"{window.group}-{window.label}",
    )
    use = WindowUse(used=window.limit, admits_at_us=1, empty_at_us=2)
    return WindowsReply(uses=(use,), refusal=refusal, retry_after_us=WAIT_US)


async def fail(_request: WindowsRequest) -> WindowsReply:
    raise ReplyError(ErrorCode.STORE_UNAVAILABLE)


def windows_of(headers: httpx.Headers) -> dict[str, str]:
    names = ("x-ratelimit-chat", "x-ratelimit-lists", "x-ratelimit-strict", "x-ratelimit-tried")
    return {name: value for name, value in headers.items() if name.startswith(names)}


def details(limit: int, scope: str, window: str) -> dict[str, Any]:
    return {
        "reason": "endpoint",
        "scope": scope,
        "limit": limit,
        "used": limit,
        "resets_at": "2026-09-03T12:01:00Z",
        "window": window,
    }


async def test_the_control_plane_is_told_every_endpoints_windows(
    world: World, module_servers: Stack
) -> None:
    async with bus_of(module_servers.servers, "control-plane") as bus:
        reply = await bus.ask(ENDPOINT_WINDOWS, EndpointWindowsRequest())
    told = {each.endpoint: each.windows for each in reply.endpoints}
    assert [window.label for window in told["POST /v1/chat/completions"]] == ["Minute", "Day"]
    (tried,) = told["POST /v1/completions"]
    assert (tried.group, tried.limit, tried.shadow) == ("Tried", 1, True)
    assert told["POST /v1/embeddings"] == ()
    assert len(told) == 8


async def test_an_inference_is_judged_in_its_preflight(world: World) -> None:
    team = world.team()

    async def judge(request: PreflightRequest) -> PreflightReply:
        minute, day = request.windows
        assert (minute.group, minute.label, minute.limit) == ("Chat", "Minute", 100)
        assert day.length_us == 86_400_000_000
        uses = (WindowUse(used=1), WindowUse(used=40))
        return replace(await allow(request), windows=uses)

    world.stand_ins.on_preflight[team.team_id] = judge
    for stream in (False, True):
        answer = await world.ask(team, more={"stream": stream})
        assert answer.status_code == 200
        assert windows_of(answer.headers) == {
            "x-ratelimit-chat-minute-limit": "100",
            "x-ratelimit-chat-minute-remaining": "99",
            "x-ratelimit-chat-day-limit": "10000",
            "x-ratelimit-chat-day-remaining": "9960",
        }
    assert world.stand_ins.windows == []


async def test_an_inference_refused_by_a_window(world: World) -> None:
    team = world.team()
    limited = await refuse(
        WindowsRequest(windows=(await _windows(world, team))[:1], deadline_us=1, team_id="t")
    )

    async def judge(request: PreflightRequest) -> PreflightReply:
        return PreflightReply(
            decision=Decision.RATE_LIMITED,
            reason="endpoint",
            retry_after_us=WAIT_US,
            limits=(await allow(request)).limits,
            refusal=limited.refusal,
            windows=(*limited.uses, WindowUse(used=100)),
        )

    world.stand_ins.on_preflight[team.team_id] = judge
    answer = await world.ask(team)
    assert answer.status_code == 429
    assert answer.headers["x-ratelimit-reason"] == "endpoint"
    assert (answer.headers["retry-after"], answer.headers["retry-after-ms"]) == ("13", "12001")
    assert answer.headers["x-ratelimit-chat-minute-remaining"] == "0"
    assert answer.headers["x-ratelimit-chat-day-remaining"] == "9900"
    assert "x-ratelimit-limit-requests" in answer.headers
    error = answer.json()["error"]
    assert error["code"] == "endpoint_limit"
    assert error["details"] == details(100, "key", "Chat-Minute")


async def _windows(world: World, team: Team) -> tuple[Any, ...]:
    await world.ask(team)
    return world.stand_ins.preflights_of(team.team_id)[-1].windows


@pytest.mark.parametrize(
    ("path", "name", "status"),
    [
        pytest.param("/v1/models", "x-ratelimit-lists-minute", 200, id="models"),
        pytest.param("/v1/models/plain", "x-ratelimit-strict-hour", 200, id="a model"),
        pytest.param("/v1/models/nope", "x-ratelimit-strict-hour", 404, id="no such model"),
        pytest.param("/v1/responses/resp_1", "x-ratelimit-lists-minute", 404, id="stored"),
    ],
)
async def test_what_has_no_preflight_asks_by_itself(
    world: World, path: str, name: str, status: int
) -> None:
    team = world.team()
    answer = await world.http.get(path, headers=team.headers)
    assert answer.status_code == status
    assert f"{name}-limit" in answer.headers
    (request,) = world.stand_ins.windows
    assert (request.team_id, request.key_id, request.address) == (team.team_id, team.key_id, None)

    world.stand_ins.on_windows = refuse
    answer = await world.http.get(path, headers=team.headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "endpoint_limit")
    assert answer.headers["retry-after"] == "13"
    assert answer.headers[f"{name}-remaining"] == "0"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        pytest.param("/v1/models", 200, id="open"),
        pytest.param("/v1/models/plain", 503, id="closed"),
    ],
)
async def test_when_nobody_can_judge_the_policy_says_what_then(
    world: World, path: str, status: int
) -> None:
    world.stand_ins.on_windows = fail
    answer = await world.http.get(path, headers=world.team().headers)
    assert answer.status_code == status
    assert windows_of(answer.headers) == {}
    if status == 503:
        assert answer.headers["retry-after"] == "1"
    mode = "open" if status == 200 else "closed"
    sample = f'quotagate_windows_not_judged_total{{on_store_failure="{mode}"}}'
    assert await world.edge.metric(sample) == 1


async def test_callers_without_a_key_are_judged_by_the_address_a_proxy_names(world: World) -> None:
    answer = await world.http.post(CHAT, json={}, headers=PROXY)
    assert answer.status_code == 401
    assert windows_of(answer.headers) == {
        "x-ratelimit-chat-minute-limit": "20",
        "x-ratelimit-chat-minute-remaining": "19",
    }
    world.stand_ins.on_windows = refuse
    wrong = new_key("another pepper").text
    answer = await world.http.post(
        CHAT, json={}, headers={**PROXY, "authorization": f"Bearer {wrong}"}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "endpoint_limit")
    assert answer.json()["error"]["details"] == details(20, "address", "Chat-Minute")
    assert {request.address for request in world.stand_ins.windows} == {"203.0.113.7"}


async def test_a_good_key_meets_no_window_of_its_address(world: World) -> None:
    world.stand_ins.on_windows = refuse
    answer = await world.ask(world.team())
    assert answer.status_code == 200
    assert world.stand_ins.windows == []


async def test_an_admission_of_before_there_were_windows_judges_none(world: World) -> None:
    """It admits and tells of no window: what may be open goes on, what is closed doesn't."""
    team = world.team()
    assert (await world.ask(team)).status_code == 200
    body = {"model": "plain", "input": "hello", "metadata": asked(team)["metadata"]}
    answer = await world.http.post("/v1/responses", json=body, headers=team.headers)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert await world.hits(team) == 1


async def test_in_shadow_mode_a_header_tells(world: World) -> None:
    team = world.team()

    async def judge(request: PreflightRequest) -> PreflightReply:
        full = WindowUse(used=1, admits_at_us=1, empty_at_us=2)
        return replace(await allow(request), windows=(full,), shadowed=(LimitReason.ENDPOINT,))

    world.stand_ins.on_preflight[team.team_id] = judge
    body = {"model": "plain", "prompt": "hello", "metadata": asked(team)["metadata"]}
    answer = await world.http.post("/v1/completions", json=body, headers=team.headers)
    assert answer.status_code == 200
    assert answer.headers["x-ratelimit-shadow"] == "endpoint"
    assert answer.headers["x-ratelimit-tried-minute-remaining"] == "0"


async def test_an_endpoint_without_a_policy_asks_nothing(world: World) -> None:
    team = world.team()
    body = {"model": "plain", "input": "hello"}
    answer = await world.http.post("/v1/embeddings", json=body, headers=team.headers)
    assert answer.status_code == 200
    assert windows_of(answer.headers) == {}
    assert [each.windows for each in world.stand_ins.preflights_of(team.team_id)] == [()]
    assert (await world.http.post("/v1/embeddings", json=body)).status_code == 401
    assert world.stand_ins.windows == []
