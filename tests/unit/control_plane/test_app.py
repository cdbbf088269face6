"""The composition: whatever is not public is behind the gate."""

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from control_plane.app import build
from control_plane.handlers.gate import Gate
from control_plane.handlers.observation import Observation
from control_plane.settings import ControlPlaneSettings
from kit.settings import load

PUBLIC = {"/health/live", "/health/ready", "/metrics", "/openapi.json"}


@pytest.fixture
def app() -> Starlette:
    """The application as it ships; nothing is opened."""
    variables = {"QUOTAGATE_ADMIN_TOKEN": "a" * 16, "QUOTAGATE_KEY_PEPPER": "b" * 16}
    return build(load(ControlPlaneSettings, variables))


def test_only_these_routes_are_public(app: Starlette) -> None:
    routes = [route for route in app.routes if isinstance(route, Route)]
    assert {route.path for route in routes} == PUBLIC
    (rest,) = [route for route in app.routes if not isinstance(route, Route)]
    assert isinstance(rest, Mount)
    assert rest.path == ""
    assert isinstance(rest.app, Observation)
    assert isinstance(rest.app._app, Gate)


async def test_a_route_added_later_needs_the_token(app: Starlette) -> None:
    (mount,) = [route for route in app.routes if isinstance(route, Mount)]
    assert isinstance(mount.app, Observation)
    gate = mount.app._app
    assert isinstance(gate, Gate)
    # As it is once the service has opened; here nothing has.
    gate._is_open = lambda: True
    called = False

    async def added() -> str:
        nonlocal called
        called = True
        return "hello"

    gate._app.add_api_route("/added", added)  # type: ignore[attr-defined] # the FastAPI application
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        assert (await client.get("/added")).status_code == 401
        assert not called
        headers = {"Authorization": "Bearer " + "a" * 16}
        assert (await client.get("/added", headers=headers)).text == '"hello"'


async def test_it_is_not_ready_before_it_opened(app: Starlette) -> None:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        assert (await client.get("/health/live")).status_code == 200
        assert (await client.get("/health/ready")).status_code == 503
