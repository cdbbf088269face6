"""One control plane for all tests that don't need one of their own, and an operator."""

from collections.abc import AsyncIterator

import httpx
import pytest
from integration.control_plane.process import ControlPlane
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from quotagate.stack import Servers


@pytest.fixture(scope="session")
async def control_plane(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ControlPlane]:
    process = ControlPlane(servers, tmp_path_factory.mktemp("control-plane"))
    await process.start_ready()
    yield process
    await process.stop()


@pytest.fixture(scope="session")
async def operator(control_plane: ControlPlane) -> AsyncIterator[httpx.AsyncClient]:
    async with control_plane.operator() as client:
        yield client


def _engine(url: str) -> AsyncEngine:
    return create_async_engine(make_url(url).set(drivername="postgresql+asyncpg"))


@pytest.fixture(scope="session")
async def settlement(servers: Servers) -> AsyncIterator[AsyncEngine]:
    """The database as settlement may use it."""
    engine = _engine(servers.database_urls["quotagate_settlement"])
    yield engine
    await engine.dispose()


@pytest.fixture(scope="session")
async def owner(servers: Servers) -> AsyncIterator[AsyncEngine]:
    """The database as its owner sees it."""
    engine = _engine(servers.database_url)
    yield engine
    await engine.dispose()
