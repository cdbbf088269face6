"""Examines Redis: that it forgets no debt and takes writes, and that our client repeats none."""

from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError

from kit.flaws import Flaw
from kit.redis import RedisClient, client_flaws, server_configurations, server_flaws
from quotagate import stores
from quotagate.doctor.clocks import Stopwatch
from quotagate.doctor.examined import Examined, version_flaws
from quotagate.stores import StoreSettings

_LEAST_VERSION = (7,)
_LEAST_MEMORY_BYTES = 64 * 1024**2
_NEARLY_FULL = 0.8


async def examine_cache(settings: StoreSettings) -> Examined:
    """Examine the server, or of a cluster the node that answers, and our client.

    Raises:
        CannotTellError: Redis doesn't answer, or refuses to say.

    """
    async with stores.cache(settings) as client:
        watch = Stopwatch()
        seconds, microseconds = await client.time()
        clock = watch.reading("redis", int(seconds) * 1_000_000 + int(microseconds))
        info: dict[str, Any] = await client.info()
        # Of several primaries with the same flaw, one is named.
        configured = [
            flaw
            for configuration in await server_configurations(client)
            for flaw in server_flaws(configuration)
        ]
        flaws = [
            *client_flaws(client),
            *dict.fromkeys(configured),
            *_info_flaws(info),
            *_cluster_flaws(info, clustered=settings.redis_cluster),
            *await _user_flaws(client),
        ]
    name = "valkey" if "valkey_version" in info else "redis"
    version = str(info.get(f"{name}_version", ""))
    return Examined(f"{name} {version}", clock, flaws)


def _info_flaws(info: dict[str, Any]) -> list[Flaw]:
    flaws = version_flaws(
        "redis",
        str(info.get("redis_version", "")),
        _LEAST_VERSION,
        "The scripts need its commands.",
    )
    if info.get("role") != "master":
        flaws.append(
            Flaw(
                what="redis: this is a replica",
                why="Scripts can't write here: every request would be refused with 503.",
                mend="Point QUOTAGATE_REDIS_URL at the primary.",
            )
        )
    if info.get("aof_last_write_status", "ok") != "ok":
        flaws.append(
            Flaw(
                what="redis: the last write of the append-only file failed",
                why="It refuses writes until it can: requests are refused with 503.",
                mend="See the server's log, and the room on its disk.",
            )
        )
    return [*flaws, *_memory_flaws(int(info.get("maxmemory", 0)), int(info.get("used_memory", 0)))]


def _memory_flaws(most: int, used: int) -> list[Flaw]:
    if most == 0:
        return []
    what = None
    if used > most * _NEARLY_FULL:
        what = f"redis: {used / most:.0%} of maxmemory is used"
    elif most < _LEAST_MEMORY_BYTES:
        what = f"redis: maxmemory is {most:,} bytes"
    if what is None:
        return []
    return [
        Flaw(
            what=what,
            why="When it is full it refuses writes, and requests are refused with 503.",
            mend="Raise maxmemory; a team takes about a kilobyte while it is active.",
            dangerous=False,
        )
    ]


def _cluster_flaws(info: dict[str, Any], *, clustered: bool) -> list[Flaw]:
    if bool(info.get("cluster_enabled")) == clustered:
        return []
    return [
        Flaw(
            what="redis: this is a cluster, and the client isn't told so"
            if info.get("cluster_enabled")
            else "redis: this is no cluster, and the client takes it for one",
            why="Commands reach nodes that don't hold the team: requests are refused with 503.",
            mend=f"QUOTAGATE_REDIS_CLUSTER={str(not clustered).lower()} for every service.",
        )
    ]


async def _user_flaws(client: RedisClient) -> list[Flaw]:
    if not isinstance(client, Redis):
        return []
    try:
        user = await client.acl_getuser("default")
    except NoPermissionError:
        return []  # whoever isn't allowed to ask has logged in with a name
    flags = {flag if isinstance(flag, str) else flag.decode() for flag in _flags(user)}
    if not {"on", "nopass"} <= flags:
        return []
    return [
        Flaw(
            what="redis: anyone who reaches the port may write",
            why="Balances and debts could be changed past the scripts.",
            mend="Turn the default user off and give each service its own;"
            " see infra/src/quotagate/access/valkey.py.",
            dangerous=False,
        )
    ]


def _flags(user: Any) -> list[str | bytes]:  # noqa: ANN401 - as the client returns it
    flags: list[str | bytes] = user.get("flags", user.get(b"flags", []))
    return flags
