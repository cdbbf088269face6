"""The scripts on the real server, as a service calls them, and an operator who looks inside."""

import itertools
import uuid
from collections.abc import AsyncIterator

import pytest
from integration.redis_scripts.clients import connect
from integration.redis_scripts.team import Team
from redis.asyncio import Redis

from quotagate.stack import Servers
from redis_scripts import RedisScripts

_numbers = itertools.count()


@pytest.fixture(scope="session")
async def scripts(servers: Servers) -> AsyncIterator[RedisScripts]:
    """The scripts under the rights of the admission service."""
    client = connect(servers.redis_urls["admission"])
    scripts = RedisScripts(client)
    yield scripts
    await scripts.drain()
    await client.aclose()


@pytest.fixture(scope="session")
async def operator(servers: Servers) -> AsyncIterator[Redis]:
    """A client that may do everything."""
    client: Redis = Redis.from_url(servers.redis_url)
    yield client
    await client.aclose()


@pytest.fixture
def team(operator: Redis) -> Team:
    """A team that nobody has met."""
    return Team(f"team-{uuid.uuid4().hex[:12]}-{next(_numbers)}", operator)
