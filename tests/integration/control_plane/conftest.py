"""One control plane for all tests that don't need one of their own, and an operator."""

from collections.abc import AsyncIterator

import httpx
import pytest
from integration.control_plane.process import ControlPlane

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
