"""A Redis client that never repeats a command, and the check of it and of its server.

A repeated command whose first outcome is unknown can debit twice, so the client's retries are off.
"""

from collections.abc import Mapping
from typing import cast

from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisClusterException, RedisError

from kit.errors import NotReadyError
from kit.flaws import Flaw, refuse
from kit.health import CheckResult
from kit.settings import RedisSettings

RedisClient = Redis | RedisCluster

# The last is uvloop's, for writing to a connection that the server has reset at that moment.
_NO_ANSWER = (RedisError, RedisClusterException, OSError, RuntimeError)

Answer = dict[str | bytes, str | bytes]
"""To `CONFIG GET`."""


class _Pool(BlockingConnectionPool):
    """A pool that forgets its idle connections when one of them turns out to be broken.

    The library gives out a connection without noticing that the server has closed it. After a
    restart of the server each idle one would fail a call of its own, and nothing is repeated.
    """

    async def release(self, connection: AbstractConnection) -> None:
        """Take a connection back."""
        broken = not connection.is_connected
        await super().release(connection)
        if broken:
            # Under the lock, so that none of them is given out while it is being closed.
            async with self._condition:
                await self.disconnect(inuse_connections=False)


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
    pool = _Pool.from_url(
        settings.redis_url.get_secret_value(),
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        max_connections=settings.redis_connections,
        timeout=timeout_s,
        retry=never_again,
    )
    return Redis.from_pool(pool)


async def check(client: RedisClient) -> None:
    """See that each server answers and never evicts, and that the client repeats nothing.

    Raises:
        NotReadyError: no answer.
        UnsafeServerError: there is a dangerous one among the `flaws`.

    """
    refuse(client_flaws(client))
    try:
        configurations = await server_configurations(client)
    except _NO_ANSWER as error:
        raise NotReadyError(f"redis: {type(error).__name__}") from error
    for configuration in configurations:
        refuse(server_flaws(configuration))


async def server_configurations(client: RedisClient) -> list[dict[str, str]]:
    """Return what `server_flaws` judges, of the server or of each primary of the cluster.

    Raises:
        RedisError, RedisClusterException: no answer, or none from one of them.

    """
    names = ("maxmemory-policy", "appendonly", "appendfsync")
    if isinstance(client, RedisCluster):
        by_node = await client.config_get(*names, target_nodes=RedisCluster.PRIMARIES)
        answers = list(cast("dict[str, Answer]", by_node).values())
    else:
        answers = [cast("Answer", await client.config_get(*names))]
    return [{_text(name): _text(value) for name, value in pairs.items()} for pairs in answers]


def client_flaws(client: RedisClient) -> list[Flaw]:
    """Return what is wrong with a client: it may never repeat a command by itself."""
    retry = client.get_retry() if isinstance(client, Redis) else client.retry
    if retry is not None and retry.get_retries() == 0:
        return []
    return [
        Flaw(
            what="redis: the client repeats commands whose outcome is unknown",
            why="A rough debit whose reply came late would be subtracted twice.",
            mend="Make the client with kit.redis.connect, which turns its retries off.",
        )
    ]


def server_flaws(configuration: Mapping[str, str]) -> list[Flaw]:
    """Return what is wrong with a server, by its `CONFIG GET`."""
    flaws = []
    policy = configuration.get("maxmemory-policy")
    if policy != "noeviction":
        flaws.append(
            Flaw(
                what=f"redis: maxmemory-policy is {policy}, not noeviction",
                why="An evicted TAT is a forgotten debt: a team that owed an hour was admitted.",
                mend="CONFIG SET maxmemory-policy noeviction, and in the configuration file.",
            )
        )
    if configuration.get("appendonly") != "yes":
        flaws.append(
            Flaw(
                what="redis: appendonly is off",
                why="A restart forgets every team's debt; balances are read again.",
                mend="CONFIG SET appendonly yes, and in the configuration file.",
                dangerous=False,
            )
        )
    elif configuration.get("appendfsync") == "no":
        flaws.append(
            Flaw(
                what="redis: appendfsync is no",
                why="After a power cut the debts of half a minute may be forgotten.",
                mend="CONFIG SET appendfsync everysec, and in the configuration file.",
                dangerous=False,
            )
        )
    return flaws


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()


async def ping(client: RedisClient) -> CheckResult:
    """Return None if the server answers, else why not."""
    try:
        await client.ping()
    except _NO_ANSWER as error:
        return type(error).__name__
    return None
