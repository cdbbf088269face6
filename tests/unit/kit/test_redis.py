"""A client that would repeat a command is refused, before it sent one."""

import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from kit.errors import UnsafeServerError
from kit.redis import check, client_flaws, connect
from kit.settings import RedisSettings, load

_NOWHERE = load(
    RedisSettings, {"QUOTAGATE_PORT": "0", "QUOTAGATE_REDIS_URL": "redis://127.0.0.1:1/0"}
)


async def test_our_client_repeats_nothing() -> None:
    client = connect(_NOWHERE)
    assert client_flaws(client) == []
    await client.aclose()


@pytest.mark.parametrize(
    "client",
    [
        pytest.param(Redis(port=1, retry=Retry(NoBackoff(), 1)), id="once"),
        pytest.param(Redis(port=1, retry=Retry(NoBackoff(), -1)), id="for ever"),
        pytest.param(Redis(port=1), id="as the library does by default"),
    ],
)
async def test_a_client_that_repeats_is_refused(client: Redis) -> None:
    with pytest.raises(UnsafeServerError, match="repeats commands"):
        await check(client)
    await client.aclose()
