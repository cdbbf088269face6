"""One edge between stand-ins and a fake provider for all tests here that don't break it."""

from collections.abc import AsyncIterator

import pytest
from integration.edge_proxy.raw_provider import RawProvider, raw_provider
from integration.edge_proxy.world import World
from integration.edge_proxy.world import world as new_world

from quotagate.stack import Servers

SETTINGS = {
    "QUOTAGATE_KEEP_ALIVE_S": "0.2",
    "QUOTAGATE_CLIENT_STALL_S": "2",
    "QUOTAGATE_MAX_BODY_BYTES": "200000",
    "QUOTAGATE_BODY_TIMEOUT_S": "2",
    "QUOTAGATE_MAX_ANSWER_BYTES": "300000",
    "QUOTAGATE_MAX_EVENT_BYTES": "100000",
    "QUOTAGATE_DRAIN_BYTES": "20000000",
    "QUOTAGATE_DRAIN_S": "5",
}


@pytest.fixture(scope="package")
async def raw() -> AsyncIterator[RawProvider]:
    """The provider `raw` of the shared world's routes; set its script."""
    async with raw_provider() as provider:
        yield provider


@pytest.fixture(scope="package")
async def world(
    servers: Servers, raw: RawProvider, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    """A world to share: use a team of your own, leave processes and servers alone."""
    folder = tmp_path_factory.mktemp("edge")
    async with new_world(servers, folder, raw.address, settings=SETTINGS) as shared:
        yield shared
        assert "Traceback" not in shared.edge.log(), shared.edge.log()
