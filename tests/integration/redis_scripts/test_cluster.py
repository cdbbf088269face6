"""The scripts on a cluster of three shards: no slot is crossed, and a lost shard stays its own."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from integration.redis_scripts.clients import connect
from integration.redis_scripts.cluster import PATIENCE_S, POLL_S, Cluster
from integration.redis_scripts.every_script import every_script
from integration.redis_scripts.terms import CAPS
from redis.crc import key_slot

from kit.errors import NotReadyError, UnsafeServerError
from kit.redis import check, ping
from redis_scripts import (
    Charge,
    RedisScripts,
    RedisScriptsError,
    SettledBalance,
)
from redis_scripts.keys import (
    team_keys,
)

TEAMS = 1_000
TEN = Charge(0, 10, CAPS)


@asynccontextmanager
async def started(folder: Path) -> AsyncIterator[Cluster]:
    cluster = Cluster()
    try:
        await cluster.start(folder)
        yield cluster
    finally:
        cluster.stop()


@asynccontextmanager
async def scripts_on(cluster: Cluster) -> AsyncIterator[RedisScripts]:
    client = connect(cluster.url, cluster=True, timeout_ms=60_000)
    scripts = RedisScripts(client)
    yield scripts
    await scripts.drain()
    await client.aclose()


@pytest.fixture(scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with started(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
async def clustered(cluster: Cluster) -> AsyncIterator[RedisScripts]:
    async with scripts_on(cluster) as scripts:
        yield scripts


def shard_of(team_id: str) -> int:
    """Return which primary holds a team; the slots are shared out in order."""
    return key_slot(team_keys(team_id).tier.encode()) * 3 // 16_384


def teams_of(shard: int, count: int) -> list[str]:
    teams = (f"team-{number}" for number in range(10_000))
    found = [team_id for team_id in teams if shard_of(team_id) == shard]
    return found[:count]


async def test_every_script_for_a_thousand_teams_crosses_no_slot(
    clustered: RedisScripts, cluster: Cluster
) -> None:
    team_ids = [f"team_{number}" for number in range(TEAMS)]
    assert {shard_of(team_id) for team_id in team_ids} == {0, 1, 2}

    await asyncio.gather(*(every_script(clustered, team_id) for team_id in team_ids))

    # Three TATs, a tier fence, a balance with its version, a day's two counters, two windows, and
    # two counters of spend with their versions for each; and two windows for each address.
    keys = addresses = 0
    for node in cluster.primaries:
        with node.client() as client:
            keys += len(list(client.scan_iter("quota:{team_*", count=10_000)))
            addresses += len(list(client.scan_iter("quota:address:*", count=10_000)))
    assert keys == 14 * TEAMS
    assert addresses == 2 * TEAMS


async def test_each_shard_heals_its_own_empty_script_cache(
    clustered: RedisScripts, cluster: Cluster
) -> None:
    team_ids = [team_id for shard in range(3) for team_id in teams_of(shard, 5)]
    await asyncio.gather(*(clustered.limits_state(team_id) for team_id in team_ids))
    with cluster.nodes[1].client() as client:
        client.script_flush()
    states = await asyncio.gather(*(clustered.limits_state(team_id) for team_id in team_ids))
    assert len(states) == 15


async def test_a_cluster_with_one_shard_that_evicts_is_unsafe(cluster: Cluster) -> None:
    client = connect(cluster.url, cluster=True)
    await check(client)
    with cluster.nodes[1].client() as node:
        node.config_set("maxmemory-policy", "allkeys-lru")
        with pytest.raises(UnsafeServerError):
            await check(client)
        node.config_set("maxmemory-policy", "noeviction")
    await client.aclose()


async def test_a_cluster_nobody_answers_for_is_not_ready() -> None:
    client = connect("redis://127.0.0.1:1", cluster=True)
    with pytest.raises(NotReadyError):
        await check(client)
    assert await ping(client) is not None
    await client.aclose()


async def test_a_moved_slot_is_followed(clustered: RedisScripts, cluster: Cluster) -> None:
    team_id = teams_of(1, 100)[-1]
    await clustered.fill_balance(team_id, SettledBalance(100, 1))
    slot = key_slot(team_keys(team_id).tier.encode())
    source, target = cluster.nodes[1], cluster.nodes[2]
    keys = (team_keys(team_id).balance, team_keys(team_id).balance_version)
    with source.client() as from_client, target.client() as to_client:
        from_id = from_client.execute_command("CLUSTER MYID")
        to_id = to_client.execute_command("CLUSTER MYID")
        to_client.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", from_id)
        from_client.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", to_id)
        from_client.migrate("127.0.0.1", target.port, list(keys), 0, 10_000)
        for client in (to_client, from_client):
            client.execute_command("CLUSTER SETSLOT", slot, "NODE", to_id)

    for _ in range(3):
        await clustered.postflight(team_id, TEN)

    assert (await clustered.limits_state(team_id)).balance_nano_usd == 70


async def test_a_frozen_shard_holds_up_its_own_teams_only(
    clustered: RedisScripts, cluster: Cluster
) -> None:
    frozen, others = teams_of(1, 5), teams_of(0, 5) + teams_of(2, 5)
    for team_id in frozen + others:
        await clustered.fill_balance(team_id, SettledBalance(1_000, 1))
        await clustered.postflight(team_id, TEN)
    cluster.nodes[1].signal(signal.SIGSTOP)
    try:
        stuck = [asyncio.create_task(clustered.postflight(team_id, TEN)) for team_id in frozen]
        replies = await asyncio.gather(*(clustered.postflight(team_id, TEN) for team_id in others))
        assert not any(call.done() for call in stuck)
    finally:
        cluster.nodes[1].signal(signal.SIGCONT)

    replies += await asyncio.gather(*stuck)
    assert {reply.balance_nano_usd for reply in replies} == {980}


async def test_a_failover_is_followed_without_a_restart(tmp_path: Path) -> None:
    [team_id] = teams_of(0, 1)
    async with started(tmp_path) as cluster, scripts_on(cluster) as scripts:
        await scripts.fill_balance(team_id, SettledBalance(1_000, 1))
        with cluster.nodes[0].client() as client:
            assert client.wait(1, 10_000) == 1
        cluster.nodes[0].stop()

        assert await answered(scripts, team_id) == 1_000
        assert (await scripts.postflight(team_id, TEN)).balance_nano_usd == 990


async def answered(scripts: RedisScripts, team_id: str) -> int | None:
    """Return the balance as soon as the team's shard answers again."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return (await scripts.limits_state(team_id)).balance_nano_usd
            except RedisScriptsError:
                await asyncio.sleep(POLL_S)
