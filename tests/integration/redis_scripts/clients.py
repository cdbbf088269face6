"""Clients made as the services make them."""

from kit.redis import RedisClient
from kit.redis import connect as kit_connect
from kit.settings import RedisSettings, load


def connect(
    url: str, *, cluster: bool = False, timeout_ms: int = 10_000, connections: int = 16
) -> RedisClient:
    """Return a client; the time-out is long, so that a busy machine doesn't fail a test."""
    return kit_connect(
        load(
            RedisSettings,
            {
                "QUOTAGATE_PORT": "0",
                "QUOTAGATE_REDIS_URL": url,
                "QUOTAGATE_REDIS_CLUSTER": str(cluster),
                "QUOTAGATE_REDIS_TIMEOUT_MS": str(timeout_ms),
                "QUOTAGATE_REDIS_CONNECTIONS": str(connections),
            },
        )
    )
