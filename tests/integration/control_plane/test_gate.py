"""The gate: nothing runs without the token, and no body is too large, too slow or not JSON."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from integration.control_plane.opened import open_team, refused, told
from integration.control_plane.process import ADMIN_TOKEN, API, ControlPlane, running

from quotagate.stack import Servers

MAX_BYTES = 4_096
BODY_TIMEOUT_S = 1


@pytest.fixture(scope="module")
async def strict(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ControlPlane]:
    """A control plane with narrow bounds."""
    settings = {
        "QUOTAGATE_ADMIN_BODY_MAX_BYTES": str(MAX_BYTES),
        "QUOTAGATE_ADMIN_BODY_TIMEOUT_S": str(BODY_TIMEOUT_S),
    }
    async with running(servers, tmp_path_factory.mktemp("strict"), settings) as process:
        await process.becomes_ready()
        yield process


@pytest.fixture
async def stranger(control_plane: ControlPlane) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=control_plane.url) as client:
        yield client


async def test_no_operation_runs_without_the_token(stranger: httpx.AsyncClient) -> None:
    document = (await stranger.get("/openapi.json")).json()
    operations = [
        (method, path) for path, methods in document["paths"].items() for method in methods
    ]
    assert len(operations) >= 20
    for method, path in operations:
        filled = path.replace("{team_id}", "demo").replace("{tier_id}", "tier")
        request = stranger.request(method.upper(), filled, json={"not": "read"})
        await refused(request, 401, "invalid_admin_token")


@pytest.mark.parametrize(
    "path",
    ["/", API, f"{API}/", f"{API}/nothing", f"{API}/teams/", "/docs", "/redoc", "//", "/healthx"],
)
async def test_what_is_not_there_needs_the_token_too(
    stranger: httpx.AsyncClient, path: str
) -> None:
    await refused(stranger.get(path), 401, "invalid_admin_token")


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/metrics", "/openapi.json"])
async def test_the_public_addresses(stranger: httpx.AsyncClient, path: str) -> None:
    assert (await stranger.get(path)).status_code == 200


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("", id="nothing"),
        pytest.param("Bearer", id="only the scheme"),
        pytest.param("Bearer wrong", id="another token"),
        pytest.param(f"Bearer {ADMIN_TOKEN}x", id="one character more"),
        pytest.param(f"Bearer {ADMIN_TOKEN[:-1]}", id="one character less"),
        pytest.param(f"Basic {ADMIN_TOKEN}", id="another scheme"),
        pytest.param(ADMIN_TOKEN, id="no scheme"),
        pytest.param(b"Bearer \xff\xfe", id="not ASCII"),
    ],
)
async def test_a_wrong_token_is_refused(stranger: httpx.AsyncClient, value: str | bytes) -> None:
    raw = value if isinstance(value, bytes) else value.encode()
    answer = await stranger.get(f"{API}/teams", headers=[(b"Authorization", raw)])
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"]["type"] == "authentication_error"


async def test_the_token_is_asked_for_before_the_body_is_read(stranger: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "application/json"}
    post = stranger.post(f"{API}/teams", content=b"{broken", headers=headers)
    await refused(post, 401, "invalid_admin_token")


async def test_the_scheme_is_read_in_any_case(stranger: httpx.AsyncClient) -> None:
    headers = {"Authorization": f"bEARER {ADMIN_TOKEN}"}
    assert (await stranger.get(f"{API}/tiers", headers=headers)).status_code == 200


async def test_a_forged_host_changes_nothing(stranger: httpx.AsyncClient) -> None:
    headers = {"Host": "evil.example/health/live?"}
    await refused(stranger.get(f"{API}/teams", headers=headers), 401, "invalid_admin_token")


@pytest.mark.parametrize(
    "body", [b"{", b"", b"[1,", b"\xff\xfe", b"nonsense", b'{"a": 1}{', b"[" * 100_00]
)
async def test_broken_json_is_400(operator: httpx.AsyncClient, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await operator.post("/teams", content=body, headers=headers)
    expected = (422, "missing_field") if body == b"" else (400, "invalid_json")
    assert (answer.status_code, answer.json()["error"]["code"]) == expected


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded"])
async def test_a_body_that_is_not_declared_as_json(
    operator: httpx.AsyncClient, content_type: str | None
) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    post = operator.post("/teams", content=b"{}", headers=headers)
    await refused(post, 415, "unsupported_media_type")


@pytest.mark.parametrize("body", [b"[]", b"7", b'"text"', b"null"], ids=repr)
async def test_json_that_is_no_object(operator: httpx.AsyncClient, body: bytes) -> None:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    answer = await operator.post("/teams", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["type"]) == (422, "invalid_request_error")


async def test_unknown_addresses_and_methods(operator: httpx.AsyncClient) -> None:
    await refused(operator.get("/nothing"), 404, "route_not_found")
    await refused(operator.get("/teams/"), 404, "route_not_found")
    await refused(operator.patch("/teams"), 405, "method_not_allowed")
    assert (await operator.patch("/teams")).headers["allow"]


async def test_answers_are_for_nobody_on_the_way(operator: httpx.AsyncClient) -> None:
    assert (await operator.get("/teams")).headers["cache-control"] == "no-store"


@pytest.mark.parametrize("size", [MAX_BYTES + 1, 1_000_000, 20_000_000])
@pytest.mark.parametrize("chunked", [False, True], ids=["with its length", "in chunks"])
async def test_a_large_body_is_refused_readably(
    strict: ControlPlane, size: int, chunked: bool
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, size, 65_536):
            yield b" " * min(65_536, size - start)

    headers = {"Content-Type": "application/json"}
    async with strict.operator() as operator:
        content = chunks() if chunked else b" " * size
        post = operator.post("/teams", content=content, headers=headers)
        await refused(post, 413, "request_too_large")


async def test_a_body_of_exactly_the_bound_is_read(strict: ControlPlane) -> None:
    async with strict.operator() as operator:
        body = b'{"tier_id":"' + b"x" * (MAX_BYTES - 14) + b'"}'
        assert len(body) == MAX_BYTES
        headers = {"Content-Type": "application/json"}
        await refused(
            operator.post("/teams", content=body, headers=headers), 422, "invalid_value", "tier_id"
        )


async def test_a_body_that_never_ends_is_given_up(strict: ControlPlane) -> None:
    host, _, port = strict.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        f"POST {API}/teams HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
    )
    answer = await asyncio.wait_for(reader.read(), 30)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"request_timeout"' in answer


async def test_requests_are_counted_by_template_and_not_by_team(
    control_plane: ControlPlane, operator: httpx.AsyncClient
) -> None:
    team_ids = [await open_team(operator) for _ in range(3)]
    for team_id in team_ids:
        await told(operator.get(f"/teams/{team_id}"))
    await operator.get("/nothing/at/all")
    async with httpx.AsyncClient() as client:
        metrics = (await client.get(f"{control_plane.url}/metrics")).text
    assert not any(team_id in metrics for team_id in team_ids)
    assert 'method="GET",route="/admin/v1/teams/{team_id}",status="200"' in metrics
    assert 'method="GET",route="none",status="404"' in metrics
    assert "nothing/at/all" not in metrics
