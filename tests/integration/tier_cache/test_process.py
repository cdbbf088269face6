"""tier-cache as a process: it boots, serves, outlives its stores, and leaves when told to."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from integration.bus import TIMEOUT_S, Bus, bus_of, refused_with
from integration.desk import Desk
from integration.lost_streams import without
from integration.services import ServiceProcess, mend
from redis.asyncio import Redis

from contracts.cache import (
    BALANCE_FILL,
    DAY_FILL,
    KEY_RESOLVE,
    POLICIES,
    TIER_RESOLVE,
    BalanceFillRequest,
    DayFillRequest,
    KeyResolveRequest,
    PoliciesRequest,
    TierResolveRequest,
)
from contracts.contract import Stream
from contracts.control import CONTROL_EVENTS, TIER_CHANGED, TierChanged
from contracts.dead import DEAD_LETTERS
from contracts.errors import ErrorCode
from contracts.inference import INFERENCE_RECORDS
from quotagate.stack import Servers, Stack
from redis_scripts.keys import team_keys

# A busy machine is no failure, and yet a frozen store is noticed soon.
PATIENT = {"QUOTAGATE_REDIS_TIMEOUT_MS": "1000"}


@pytest.fixture
async def own_desk(module_servers: Stack) -> AsyncIterator[Desk]:
    desk = Desk(module_servers.servers)
    yield desk
    await desk.close()


@pytest.fixture
async def process(module_servers: Stack, tmp_path: Path) -> AsyncIterator[ServiceProcess]:
    process = ServiceProcess(module_servers.servers, "tier-cache", tmp_path, PATIENT)
    yield process
    await process.stop()
    await asyncio.to_thread(mend, module_servers)


async def _evicted(operator: Redis, team_id: str) -> None:
    """Return once the team's tier is gone from Redis."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            if not await operator.exists(team_keys(team_id).tier):
                return
            await asyncio.sleep(0.01)


async def test_it_boots_serves_and_leaves(
    servers: Servers, desk: Desk, admission: Bus, operator: Redis, tmp_path: Path
) -> None:
    process = ServiceProcess(servers, "tier-cache", tmp_path, PATIENT)
    try:
        await process.start_ready()
        tier_id = await desk.open_tier()
        team_id = await desk.open_team(tier_id, balance_usd="2")
        assert (await admission.ask(TIER_RESOLVE, TierResolveRequest(team_id=team_id))).found
        assert (await admission.ask(BALANCE_FILL, BalanceFillRequest(team_id=team_id))).found
        policies = (await admission.ask(POLICIES, PoliciesRequest())).policies
        assert tier_id in {policy.tier_id for policy in policies}
        keys = team_keys(team_id)
        assert await operator.mget(keys.tier, keys.balance) == [tier_id.encode(), b"2000000000"]
        filled = 'quotagate_tier_cache_fills_total{kind="tier",result="filled"}'
        assert await process.metric(filled) == 1
        process.signal(signal.SIGTERM)
        assert await process.ended() in {0, -signal.SIGTERM}
        assert "Traceback" not in process.log()
    finally:
        await process.stop()


async def test_without_postgres_changes_still_reach_redis(
    module_servers: Stack, own_desk: Desk, process: ServiceProcess
) -> None:
    """It even boots without Postgres; only what must be read has to wait for it."""
    servers = module_servers.servers
    team_id, key_id = await own_desk.open_team(), "key"
    operator: Redis = Redis.from_url(servers.redis_url)
    await operator.set(team_keys(team_id).tier, "old")
    await asyncio.to_thread(module_servers.stop, "postgres")

    await process.start()
    assert set(await process.becomes_unready("postgres")) == {"postgres"}
    async with bus_of(servers, "edge-proxy") as edge, bus_of(servers, "control-plane") as desk:
        with refused_with(ErrorCode.STORE_UNAVAILABLE):
            await edge.ask(KEY_RESOLVE, KeyResolveRequest(key_id=key_id))
        changed = TierChanged(team_id=team_id, tier_id="new", version=2, changed_at_us=1)
        await desk.announce(TIER_CHANGED, team_id, changed)
        await _evicted(operator, team_id)

        await asyncio.to_thread(module_servers.start, "postgres")
        await process.becomes_ready()
        assert (await edge.ask(KEY_RESOLVE, KeyResolveRequest(key_id=key_id))).key is None
    await operator.aclose()


@pytest.mark.parametrize(
    "stream", [CONTROL_EVENTS, DEAD_LETTERS, INFERENCE_RECORDS], ids=lambda each: each.name
)
async def test_a_stream_that_was_deleted_is_told_and_used_again_once_it_is_there(
    module_servers: Stack, own_desk: Desk, process: ServiceProcess, stream: Stream
) -> None:
    servers = module_servers.servers
    team_id = await own_desk.open_team()
    operator: Redis = Redis.from_url(servers.redis_url)
    await process.start_ready()
    day = DayFillRequest(team_id=team_id, start_us=0, end_us=86_400_000_000)
    async with bus_of(servers, "admission") as admission:
        async with without(servers, stream):
            reasons = await process.becomes_unready("streams")
            assert reasons == {"streams": f"stream {stream.name}: NotFoundError"}
            # What needs no stream goes on.
            assert (await admission.ask(TIER_RESOLVE, TierResolveRequest(team_id=team_id))).found
            if stream is INFERENCE_RECORDS:
                with refused_with(ErrorCode.STORE_UNAVAILABLE):
                    await admission.ask(DAY_FILL, day)
        await process.becomes_ready()
        assert (await admission.ask(DAY_FILL, day)).found
    async with bus_of(servers, "control-plane") as desk:
        changed = TierChanged(team_id=team_id, tier_id="new", version=2, changed_at_us=1)
        await desk.announce(TIER_CHANGED, team_id, changed)
        await _evicted(operator, team_id)
    await operator.aclose()


def _signal_postgres(stack: Stack, number: signal.Signals) -> None:
    """Send a signal to the postmaster and its backends, which would go on without it."""
    pid = next(status.pid for status in stack.status() if status.name == "postgres")
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    for process in (pid, *map(int, children)):
        os.kill(process, number)


async def test_frozen_postgres_is_an_error_in_time_and_heals(
    module_servers: Stack, own_desk: Desk, process: ServiceProcess
) -> None:
    team_id = await own_desk.open_team()
    await process.start_ready()
    request = TierResolveRequest(team_id=team_id)
    async with bus_of(module_servers.servers, "admission") as admission:
        await admission.ask(TIER_RESOLVE, request)
        _signal_postgres(module_servers, signal.SIGSTOP)
        try:
            await process.becomes_unready("postgres")
            with refused_with(ErrorCode.STORE_UNAVAILABLE):
                await admission.ask(TIER_RESOLVE, request)
        finally:
            _signal_postgres(module_servers, signal.SIGCONT)
        await process.becomes_ready()
        assert (await admission.ask(TIER_RESOLVE, request)).found


async def test_frozen_redis_is_an_error_in_time_and_events_wait_for_it(
    module_servers: Stack, own_desk: Desk, process: ServiceProcess
) -> None:
    servers = module_servers.servers
    team_id = await own_desk.open_team()
    operator: Redis = Redis.from_url(servers.redis_url)
    await operator.set(team_keys(team_id).tier, "old")
    await process.start_ready()
    async with bus_of(servers, "admission") as admission, bus_of(servers, "control-plane") as desk:
        module_servers.signal("valkey", "STOP")
        await process.becomes_unready("redis")
        with refused_with(ErrorCode.STORE_UNAVAILABLE):
            await admission.ask(TIER_RESOLVE, TierResolveRequest(team_id=team_id))
        changed = TierChanged(team_id=team_id, tier_id="new", version=1, changed_at_us=1)
        await desk.announce(TIER_CHANGED, team_id, changed)
        await process.becomes_more(
            'quotagate_tier_cache_changes_total{kind="tier",result="failed"}'
        )

        module_servers.signal("valkey", "CONT")
        await _evicted(operator, team_id)
        await process.becomes_ready()
        assert (await admission.ask(TIER_RESOLVE, TierResolveRequest(team_id=team_id))).found
    await operator.aclose()
