"""Looking at every cached balance where they are spread over the shards of a cluster."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from integration.redis_scripts.clients import connect
from integration.redis_scripts.cluster import Cluster

from redis_scripts import RedisScripts, SettledBalance
from settlement.domain.reconciling import CachedBalance
from settlement.store.balances import BalanceCache


@pytest.fixture
async def clustered(tmp_path: Path) -> AsyncIterator[BalanceCache]:
    cluster = Cluster()
    try:
        await cluster.start(tmp_path)
        client = connect(cluster.url, cluster=True)
        scripts = RedisScripts(client)
        yield BalanceCache(client, scripts)
        await scripts.drain()
        await client.aclose()
    finally:
        cluster.stop()


async def test_every_balance_of_every_shard_is_seen_once(clustered: BalanceCache) -> None:
    settled = {f"team-{number}": SettledBalance(-number, number + 1) for number in range(1_200)}
    for team_id, balance in settled.items():
        await clustered.refresh(team_id, balance)
    seen = [cached async for chunk in clustered.all() for cached in chunk]
    assert sorted(seen, key=lambda cached: cached.version or 0) == [
        CachedBalance(team_id, balance.balance_nano_usd, balance.version)
        for team_id, balance in settled.items()
    ]
