"""The real servers and the real stack, started once per run and removed after it."""

from collections.abc import Iterator

import midnights
import pytest
from stacks import new_stack, stack_of_servers

from quotagate.stack import Servers, Stack


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """NATS, Valkey and a migrated Postgres without any service. Use team ids of your own."""
    with stack_of_servers("servers") as stack:
        yield stack.servers


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """Everything: servers of its own, all services, the fake provider, the demo data."""
    # What a killed settlement had taken shall not be waited for half a minute.
    with new_stack("stack", QUOTAGATE_ACK_WAIT_S="5") as stack:
        stack.up()
        yield stack


@pytest.fixture
async def far_from_midnight() -> None:
    """Whoever counts by the day begins with room before the next midnight."""
    await midnights.far_from_midnight()


@pytest.fixture
def own_servers() -> Iterator[Stack]:
    """A stack of this test alone with only its servers, to stop, freeze and kill."""
    with stack_of_servers("own") as stack:
        yield stack


@pytest.fixture(scope="module")
def module_servers() -> Iterator[Stack]:
    """A stack of this module alone with only its servers; each test leaves them as it met them."""
    with stack_of_servers("module") as stack:
        yield stack
