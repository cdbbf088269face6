"""Each wrong request has its row in the error table; no provider sees it, nothing moves."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from e2e.operator import MODEL, Customer, Operator
from integration.fake_provider.witness import Witness

from fake_provider.behaviour import fake
from kit.ids import new_id
from kit.keys import new_key
from quotagate.stack import Stack

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
async def team(operator: Operator) -> Customer:
    return await operator.open_team()


@pytest.fixture
async def http(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=stack.url("edge-proxy"), timeout=20) as client:
        yield client


def _body(**changes: Any) -> bytes:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]} | changes
    return json.dumps(body).encode()


@pytest.mark.parametrize(
    ("body", "status", "kind", "code"),
    [
        pytest.param(b"", 400, "invalid_request_error", "invalid_json", id="no body"),
        pytest.param(b"{", 400, "invalid_request_error", "invalid_json", id="broken JSON"),
        pytest.param(b"[]", 400, "invalid_request_error", "invalid_json", id="not an object"),
        pytest.param(
            b'{"messages":[]}', 400, "invalid_request_error", "missing_parameter", id="no model"
        ),
        pytest.param(
            b'{"model":7}',
            400,
            "invalid_request_error",
            "invalid_parameter",
            id="a number as model",
        ),
        pytest.param(
            _body(stream="yes"),
            400,
            "invalid_request_error",
            "invalid_parameter",
            id="stream is text",
        ),
        pytest.param(
            _body(model="no-such-model"),
            404,
            "invalid_request_error",
            "model_not_found",
            id="unknown model",
        ),
        pytest.param(b"\xff\xfe{}", 400, "invalid_request_error", "invalid_json", id="not UTF-8"),
    ],
)
async def test_wrong_bodies(
    http: httpx.AsyncClient, team: Customer, body: bytes, status: int, kind: str, code: str
) -> None:
    response = await http.post(CHAT, content=body, headers={"authorization": f"Bearer {team.key}"})
    error = response.json()["error"]
    assert (response.status_code, error["type"], error["code"]) == (status, kind, code)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="no key"),
        pytest.param({"authorization": ""}, id="an empty header"),
        pytest.param({"authorization": "Bearer"}, id="no token"),
        pytest.param({"authorization": "Bearer sk-somebody-elses"}, id="another's format"),
        pytest.param({"authorization": "Basic YTpi"}, id="another scheme"),
        pytest.param({"authorization": f"Bearer {new_key('wrong pepper').text}"}, id="unknown"),
    ],
)
async def test_wrong_keys_are_told_the_same(
    http: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    response = await http.post(CHAT, content=_body(), headers=headers)
    error = response.json()["error"]
    assert (response.status_code, error["type"], error["code"]) == (
        401,
        "authentication_error",
        "invalid_api_key",
    )
    again = await http.post(CHAT, content=_body(), headers={"authorization": "Bearer other"})
    assert again.json() == response.json()


async def test_a_tampered_secret_is_refused(http: httpx.AsyncClient, operator: Operator) -> None:
    one, two = await operator.open_team(), await operator.open_team()
    head, _, _ = one.key.rpartition("_")
    _, _, secret = two.key.rpartition("_")
    response = await http.post(
        CHAT, content=_body(), headers={"authorization": f"Bearer {head}_{secret}"}
    )
    assert response.status_code == 401


async def test_a_revoked_key_is_refused_within_a_second(
    http: httpx.AsyncClient, operator: Operator
) -> None:
    team = await operator.open_team()
    headers = {"authorization": f"Bearer {team.key}"}
    assert (await http.post(CHAT, content=_body(), headers=headers)).status_code == 200
    await operator.send("DELETE", f"/keys/{team.key_id}")
    async with asyncio.timeout(1):
        while (await http.get("/v1/models", headers=headers)).status_code != 401:
            await asyncio.sleep(0.01)
    assert (await http.post(CHAT, content=_body(), headers=headers)).status_code == 401


async def test_a_body_too_large_is_read_as_413(http: httpx.AsyncClient, team: Customer) -> None:
    large = _body(messages=[{"role": "user", "content": "x" * (33 * 1024 * 1024)}])
    response = await http.post(CHAT, content=large, headers={"authorization": f"Bearer {team.key}"})
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "request_too_large"


async def test_what_is_refused_before_admission_moves_nothing(
    http: httpx.AsyncClient, operator: Operator, witness: Witness
) -> None:
    team, marker = await operator.open_team(await operator.open_tier(rpm=1)), new_id()
    headers = {"authorization": f"Bearer {team.key}"}
    for body in (b"{", _body(model="no-such-model", metadata=fake(marker=marker))):
        await http.post(CHAT, content=body, headers=headers)
    assert (await witness.counts(marker=marker))["requests"] == 0
    assert (await http.post(CHAT, content=_body(), headers=headers)).status_code == 200
    assert len(await operator.settled(team.team_id)) == 1


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/nothing", "/admin/v1/teams", "/metricsx"])
async def test_an_unknown_path_is_a_404_in_the_apis_shape(
    http: httpx.AsyncClient, path: str
) -> None:
    response = await http.get(path)
    assert response.status_code == 404
    assert response.json()["error"]["type"] == "invalid_request_error"


async def test_a_wrong_method_is_a_405_in_the_apis_shape(http: httpx.AsyncClient) -> None:
    response = await http.get(CHAT)
    assert response.status_code == 405
    assert response.json()["error"]["type"] == "invalid_request_error"
