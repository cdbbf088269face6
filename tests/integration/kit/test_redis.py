"""The Redis client on a real server that restarts."""

import asyncio

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from kit import redis
from kit.settings import RedisSettings, load
from quotagate.stack import Stack

_CONNECTIONS = 8


async def test_a_restart_of_the_server_fails_one_call_and_not_one_for_each_connection(
    own_servers: Stack,
) -> None:
    settings = load(
        RedisSettings,
        {
            "QUOTAGATE_PORT": "0",
            "QUOTAGATE_REDIS_URL": own_servers.servers.redis_url,
            "QUOTAGATE_REDIS_TIMEOUT_MS": "10000",
            "QUOTAGATE_REDIS_CONNECTIONS": str(_CONNECTIONS),
        },
    )
    client = redis.connect(settings)
    assert isinstance(client, Redis)
    # Calls that wait together need a connection each.
    await asyncio.gather(*(client.wait(1, 50) for _ in range(_CONNECTIONS)))
    await asyncio.to_thread(own_servers.restart, "valkey")
    with pytest.raises(RedisError):
        await client.ping()
    answers = await asyncio.gather(*(client.wait(1, 50) for _ in range(_CONNECTIONS)))
    await client.aclose()
    assert answers == [0] * _CONNECTIONS
