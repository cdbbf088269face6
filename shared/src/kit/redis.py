"""A Redis client that never repeats a command, and the check of the server it talks to.

A repeated command whose first outcome is unknown can debit twice, so the client's retries are off.
"""

from typing import cast

from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisClusterException, RedisError

from kit.errors import NotReadyError, UnsafeServerError
from kit.health import CheckResult
from kit.settings import RedisSettings

RedisClient = Redis | RedisCluster

_POLICY = "maxmemory-policy"


def connect(settings: RedisSettings) -> RedisClient:
    """Return a client; it connects with its first command. Bytes in, bytes out.

    A wait for a free connection counts against the same time-out as a reply.
    """
    timeout_s = settings.redis_timeout_ms / 1000
    never_again = Retry(NoBackoff(), 0)
    if settings.redis_cluster:
        return RedisCluster.from_url(
            settings.redis_url.get_secret_value(),
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            max_connections=settings.redis_connections,
            retry=never_again,
        )
    pool = BlockingConnectionPool.from_url(
        settings.redis_url.get_secret_value(),
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        max_connections=settings.redis_connections,
        timeout=timeout_s,
        retry=never_again,
    )
    return Redis.from_pool(pool)


async def check(client: RedisClient) -> None:
    """See that the server, or each primary of the cluster, answers and never evicts.

    An evicting server forgets debts: it was seen to admit a team with an hour of debt.

    Raises:
        NotReadyError: no answer.
        UnsafeServerError: `maxmemory-policy` is not `noeviction`.

    """
    try:
        if isinstance(client, RedisCluster):
            by_node = await client.config_get(_POLICY, target_nodes=RedisCluster.PRIMARIES)
            answers = list(cast("dict[str, dict[str | bytes, str | bytes]]", by_node).values())
        else:
            answers = [cast("dict[str | bytes, str | bytes]", await client.config_get(_POLICY))]
    except (RedisError, RedisClusterException) as error:
        raise NotReadyError(f"redis: {type(error).__name__}") from error
    found = (value for answer in answers for value in answer.values())
    values = {value if isinstance(value, str) else value.decode() for value in found}
    if values != {"noeviction"}:
        raise UnsafeServerError(f"redis: {_POLICY} is {sorted(values)}, not noeviction")


async def ping(client: RedisClient) -> CheckResult:
    """Return None if the server answers, else why not."""
    try:
        await client.ping()
    except (RedisError, RedisClusterException) as error:
        return type(error).__name__
    return None
