"""The scripts on a cluster of three shards: no slot is crossed, and a lost shard stays its own."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from integration.redis_scripts.clients import connect
from integration.redis_scripts.cluster import PATIENCE_S, POLL_S, Cluster
from integration.redis_scripts.terms import CAPS, PLAIN, charge_of, terms_of
from msgspec.structs import replace
from redis.crc import key_slot

from kit.errors import NotReadyError, UnsafeServerError
from kit.redis import check, ping
from redis_scripts import (
    BalanceAdjustment,
    BalanceFill,
    BalanceRefresh,
    BalanceRepair,
    Charge,
    CountCharge,
    CountedSpend,
    CountTerms,
    DayUsage,
    DayWindow,
    DebtCharge,
    DebtTerms,
    LeaseEnd,
    LeaseTerms,
    RedisScripts,
    RedisScriptsError,
    SettledBalance,
    Spend,
    SpendCharge,
    SpendFill,
    SpendRefresh,
    SpendRepair,
    SpendTerms,
    TierEviction,
    TierFill,
    Verdict,
    WindowTerms,
)
from redis_scripts.keys import (
    INPUT_TAT,
    LEASES,
    address_owner,
    day_counter,
    spend_counter,
    team_keys,
    team_owner,
    window_log,
)

TEAMS = 1_000
TEN = Charge(0, 10, CAPS)
DAYS = DayWindow(0, 0, 2**52)
COUNTER = day_counter(DAYS.boundary_us, DAYS.end_us, "requests")
LOGS = (window_log("Chat", "Minute", "key"), window_log("Chat", "Day", "key"))
FURTHER = (
    DebtTerms(INPUT_TAT, 1, 10**9, CAPS.token_us),
    LeaseTerms(LEASES, 1, "call", 10**9),
    CountTerms((COUNTER, COUNTER), 9, 1, 1),
)


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


async def every_script(scripts: RedisScripts, team_id: str) -> None:
    """Run each script once, in an order in which each does its work."""
    assert await scripts.fill_tier(team_id, "tier_1", 1) is TierFill.FILLED
    assert await scripts.fill_balance(team_id, SettledBalance(100, 1)) is BalanceFill.FILLED
    admitted = await scripts.preflight(team_id, terms_of(PLAIN))
    assert admitted.verdict is Verdict.ADMITTED
    charged = await scripts.postflight(team_id, charge_of(PLAIN, 1_000, 40))
    assert charged.balance_nano_usd == 60
    assert charged.request_tat_us == admitted.request_tat_us
    await every_further_limit(scripts, team_id)
    await every_window(scripts, team_id)
    await every_spend(scripts, team_id)
    charged = await scripts.postflight(team_id, Charge(0, 0, CAPS))
    assert (await scripts.cap_debts(team_id, CAPS)).token_tat_us == charged.token_tat_us
    adjusted = await scripts.adjust_balance(team_id, 5, 2)
    assert adjusted is BalanceAdjustment.APPLIED
    refreshed = await scripts.refresh_balance(team_id, SettledBalance(70, 3))
    assert refreshed is BalanceRefresh.APPLIED
    repaired = await scripts.repair_balance(team_id, 70, SettledBalance(71, 3))
    assert repaired is BalanceRepair.APPLIED
    assert await scripts.evict_tier(team_id, 2) is TierEviction.EVICTED
    state = await scripts.limits_state(team_id)
    assert (state.tier_id, state.tier_version) == (None, 2)
    assert (state.balance_nano_usd, state.balance_version) == (71, 3)


async def every_spend(scripts: RedisScripts, team_id: str) -> None:
    """Count the spend of the team and of a key, meet its limit, and settle it."""
    end_us = DAYS.end_us
    terms, charges = [], []
    for key_id in (None, "key-1"):
        spent = Spend(key_id, 0, end_us, 4, 1)
        assert await scripts.fill_spend(team_id, spent) is SpendFill.FILLED
        places = (spend_counter(0, end_us, key_id),) * 2
        terms.append(SpendTerms(places, end_us, 9))
        charges.append(SpendCharge(places, end_us))
    generous = replace(terms_of(PLAIN), request_burst_us=10**9, token_burst_us=10**9)
    met = await scripts.preflight(team_id, replace(generous, further=tuple(terms), days=DAYS))
    assert (met.verdict, [each.value for each in met.further]) == (Verdict.ADMITTED, [4, 4])
    charged = await scripts.postflight(team_id, Charge(0, 5, CAPS, tuple(charges), DAYS))
    assert [each.value for each in charged.further] == [9, 9]
    met = await scripts.preflight(team_id, replace(generous, further=tuple(terms), days=DAYS))
    assert met.verdict is Verdict.LIMITED
    assert (await scripts.limits_state(team_id, terms, DAYS)).further == (9, 9)
    settled = Spend(None, 0, end_us, 8, 2)
    assert await scripts.refresh_spend(team_id, settled) is SpendRefresh.APPLIED
    lower = replace(settled, amount_nano_usd=7)
    mended = await scripts.repair_spend(team_id, CountedSpend(8, 2), lower)
    assert mended is SpendRepair.APPLIED


async def every_window(scripts: RedisScripts, team_id: str) -> None:
    """Meet windows of the team's key in both scripts, and those of an address."""
    mine = [WindowTerms(place, 9, 10**9, "first") for place in LOGS]
    generous = replace(terms_of(PLAIN), request_burst_us=10**9, token_burst_us=10**9)
    admitted = await scripts.preflight(team_id, replace(generous, windows=tuple(mine)))
    assert [use.used for use in admitted.windows] == [1, 1]
    mine = [replace(window, name="second") for window in mine]
    judged = await scripts.judge_windows(team_owner(team_id), mine)
    assert [use.used for use in judged.uses] == [2, 2]
    number = int(team_id.rpartition("_")[2])
    address = address_owner(f"10.0.{number // 256}.{number % 256}")
    assert (await scripts.judge_windows(address, mine)).admitted


async def every_further_limit(scripts: RedisScripts, team_id: str) -> None:
    """Meet each kind of further limit once; the day is all of time."""
    used = DayUsage(0, DAYS.end_us, 4, 0)
    assert await scripts.fill_day(team_id, used) == 2
    terms = replace(terms_of(PLAIN), request_burst_us=10**9, token_burst_us=10**9)
    admitted = await scripts.preflight(team_id, replace(terms, further=FURTHER, days=DAYS))
    assert [reading.value for reading in admitted.further[1:]] == [1, 5]
    assert await scripts.renew_lease(team_id, "call", 10**9)
    charges = (
        DebtCharge(INPUT_TAT, 0, CAPS.token_us),
        LeaseEnd(LEASES, "call"),
        CountCharge(FURTHER[2].places, 7),
    )
    charged = await scripts.postflight(team_id, Charge(0, 0, CAPS, charges, DAYS))
    assert [reading.value for reading in charged.further[1:]] == [0, 12]
    assert not await scripts.release_lease(team_id, "call")
    state = await scripts.limits_state(team_id, FURTHER, DAYS)
    assert state.further == tuple(reading.value for reading in charged.further)


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
