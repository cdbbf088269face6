"""The commands that look at every team's cache, where the teams are spread over shards."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from integration.quotagate.scratch import Scratch
from integration.redis_scripts.clients import connect
from integration.redis_scripts.cluster import Cluster

from kit.redis import RedisClient
from quotagate import stores
from quotagate.catch_up.caches import forget_newer
from quotagate.verify import Kind, Report
from quotagate.verify.cached import check_cache
from redis_scripts import RedisScripts, SettledBalance

# More than one chunk.
TEAMS = [f"team-{number:04}" for number in range(700)]


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[RedisClient]:
    """A cluster that caches balances of teams that no database has."""
    cluster = Cluster()
    try:
        await cluster.start(tmp_path)
        client = connect(cluster.url, cluster=True)
        scripts = RedisScripts(client)
        for team_id in TEAMS:
            await scripts.refresh_balance(team_id, SettledBalance(1, 1))
        await scripts.drain()
        yield client
        await client.aclose()
    finally:
        cluster.stop()


async def test_every_team_is_seen_and_forgotten(client: RedisClient, scratch: Scratch) -> None:
    report = Report(listed=0)
    async with stores.database(scratch.settings) as engine:
        await check_cache(client, engine, 0, report)
        assert report.counts == {Kind.CACHED_WITHOUT_ACCOUNT: len(TEAMS)}
        assert await forget_newer(client, engine) == TEAMS
        assert await forget_newer(client, engine) == []
