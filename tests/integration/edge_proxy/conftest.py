"""One edge between stand-ins and a fake provider for all tests here that don't break it.

The stand-ins answer in admission's and tier-cache's place, so they have a NATS of their own: on
another's they would answer for the real ones.
"""

from collections.abc import AsyncIterator, Iterator

import pytest
from integration.edge_proxy.raw_provider import RawProvider, raw_provider
from integration.edge_proxy.world import World
from integration.edge_proxy.world import world as new_world
from stacks import stack_of_servers

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


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Servers on which nobody but the stand-ins answers."""
    with stack_of_servers("edge-proxy") as stack:
        yield stack.servers


@pytest.fixture(scope="session")
async def raw() -> AsyncIterator[RawProvider]:
    """The provider `raw` of the shared world's routes; set its script."""
    async with raw_provider() as provider:
        yield provider


@pytest.fixture(scope="session")
async def world(
    servers: Servers, raw: RawProvider, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    """A world to share: use a team of your own, leave processes and servers alone."""
    folder = tmp_path_factory.mktemp("edge")
    async with new_world(servers, folder, raw.address, settings=SETTINGS) as shared:
        yield shared
        assert "Traceback" not in shared.edge.log(), shared.edge.log()
