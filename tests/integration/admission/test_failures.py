"""What admission needs fails: never a decision, always an error in time, and it heals by itself."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from integration.admission.conftest import PATIENT
from integration.admission.edge import Edge
from integration.bus import TIMEOUT_S, bus_of, refused_with
from integration.desk import Desk
from integration.redis_scripts.team import Team
from integration.services import ServiceProcess, mend
from integration.tables.rows import new_name
from redis.asyncio import Redis

from contracts.admission import Decision
from contracts.control import POLICY_CHANGED, PolicyChanged
from contracts.errors import ErrorCode
from contracts.usage import Usage
from contracts.windows import Window
from kit.bus.errors import BusError, NoResponderError
from quotagate.stack import Stack

DAY_US = 24 * 3_600_000_000
AN_HOUR = {"QUOTAGATE_REFRESH_INTERVAL_S": "3600"}
"""So that nothing but an event, or its absence, causes a load."""
SLOWER_THAN_ANY_TEST = {"QUOTAGATE_REDIS_TIMEOUT_MS": "600000"}


@dataclass(frozen=True)
class World:
    """Servers of this module alone, two services that aren't started yet, and one priced model."""

    stack: Stack
    desk: Desk
    redis: Redis
    admission: ServiceProcess
    tier_cache: ServiceProcess
    edge: Edge


@pytest.fixture
async def world(module_servers: Stack, tmp_path: Path) -> AsyncIterator[World]:
    servers = module_servers.servers
    desk = Desk(servers)
    redis: Redis = Redis.from_url(servers.redis_url)
    model = new_name("model")
    await desk.add_price(model)
    admission = ServiceProcess(servers, "admission", tmp_path, AN_HOUR | SLOWER_THAN_ANY_TEST)
    tier_cache = ServiceProcess(servers, "tier-cache", tmp_path, PATIENT)
    async with bus_of(servers, "edge-proxy") as bus:
        yield World(module_servers, desk, redis, admission, tier_cache, Edge(bus, model))
    await admission.stop()
    await tier_cache.stop()
    await asyncio.to_thread(mend, module_servers)
    await redis.config_set("maxmemory-policy", "noeviction")
    await redis.config_set("maxmemory", 0)
    await redis.aclose()
    await desk.close()


async def test_nobody_is_served_before_tier_cache_is_there(world: World) -> None:
    await world.admission.start()
    reasons = await world.admission.becomes_unready("service")
    assert "policies" in reasons["service"]
    with pytest.raises(NoResponderError):
        await world.edge.preflight("team")
    await world.tier_cache.start_ready()
    await world.admission.becomes_ready()
    team_id = await world.desk.open_team()
    assert (await world.edge.preflight(team_id)).decision is Decision.ALLOWED


async def test_an_evicting_redis_is_not_accepted(world: World) -> None:
    await world.redis.config_set("maxmemory-policy", "allkeys-lru")
    await world.admission.start()
    reasons = await world.admission.becomes_unready("service")
    while "noeviction" not in reasons["service"]:
        reasons = await world.admission.becomes_unready("service")


async def test_a_frozen_redis_is_an_error_within_the_deadline_and_heals(world: World) -> None:
    await world.tier_cache.start_ready()
    await world.admission.start_ready()
    team = Team(await world.desk.open_team(await world.desk.open_tier(rpm=10**6)), world.redis)
    admitted = await world.edge.preflight(team.team_id)

    world.stack.signal("valkey", "STOP")
    with refused_with(ErrorCode.STORE_UNAVAILABLE):
        await world.edge.preflight(team.team_id, deadline_s=0.25)
    world.stack.signal("valkey", "CONT")
    assert (await world.edge.preflight(team.team_id)).decision is Decision.ALLOWED
    assert (await world.edge.postflight(team.team_id, admitted, Usage(input=1))).balance_known


async def test_windows_that_nobody_can_judge_are_an_error_within_the_deadline(
    world: World,
) -> None:
    window = Window(group="Chat", label="Minute", limit=1, length_us=60_000_000)
    await world.tier_cache.start_ready()
    await world.admission.start_ready()
    world.stack.signal("valkey", "STOP")
    with refused_with(ErrorCode.STORE_UNAVAILABLE):
        await world.edge.judge(window, deadline_s=0.3, address="203.0.113.7")
    world.stack.signal("valkey", "CONT")
    assert (await world.edge.judge(window, address="203.0.113.8")).refusal is None
    refused = await world.edge.judge(window, address="203.0.113.8")
    assert refused.refusal is not None


async def test_a_stopped_redis_is_an_error_at_once_and_heals(world: World) -> None:
    await world.tier_cache.start_ready()
    await world.admission.start_ready()
    team_id = await world.desk.open_team(await world.desk.open_tier(rpm=10**6))
    admitted = await world.edge.preflight(team_id)
    await asyncio.to_thread(world.stack.stop, "valkey")
    with refused_with(ErrorCode.STORE_UNAVAILABLE):
        await world.edge.preflight(team_id)
    with refused_with(ErrorCode.STORE_UNAVAILABLE):
        await world.edge.postflight(team_id, admitted, Usage(input=1))
    await world.admission.becomes_unready("redis")
    await asyncio.to_thread(world.stack.start, "valkey")
    assert (await world.edge.preflight(team_id)).decision is Decision.ALLOWED
    await world.admission.becomes_ready()


async def test_without_tier_cache_cached_teams_go_on_and_a_miss_is_an_error(world: World) -> None:
    await world.tier_cache.start_ready()
    await world.admission.start_ready()
    tier_id = await world.desk.open_tier(rpm=10**6)
    cached = await world.desk.open_team(tier_id)
    unmet = Team(await world.desk.open_team(tier_id), world.redis)
    await world.edge.preflight(cached)
    await world.tier_cache.stop()
    assert (await world.edge.preflight(cached)).decision is Decision.ALLOWED
    with refused_with(ErrorCode.STORE_UNAVAILABLE):
        await world.edge.preflight(unmet.team_id)
    assert await unmet.snapshot() == {}
    assert await world.admission.problems() == {}


async def test_what_was_announced_while_the_bus_was_gone_is_caught_up(world: World) -> None:
    await world.tier_cache.start_ready()
    await world.admission.start_ready()
    tier_id = await world.desk.open_tier(rpm=10**6)
    team_id = await world.desk.open_team(tier_id)
    await world.edge.preflight(team_id)
    await asyncio.to_thread(world.stack.stop, "nats")
    await world.admission.becomes_unready("nats")
    await world.desk.change_policy(tier_id, rpm=10**5, tpm=60_000)
    await asyncio.to_thread(world.stack.start, "nats")

    async def caught_up() -> None:
        while True:
            try:
                reply = await world.edge.preflight(team_id)
            except BusError:
                pass  # not everybody is back
            else:
                if reply.policy is not None and reply.policy.rpm == 10**5:
                    return
            await asyncio.sleep(0.02)

    await asyncio.wait_for(caught_up(), 3 * TIMEOUT_S)


async def test_a_failed_load_keeps_the_policies_that_were_there(world: World) -> None:
    await world.tier_cache.start_ready()
    await world.admission.start_ready()
    tier_id = await world.desk.open_tier(rpm=10**6)
    team_id = await world.desk.open_team(tier_id)
    await world.edge.preflight(team_id)
    await world.tier_cache.stop()
    async with bus_of(world.stack.servers, "control-plane") as control_plane:
        changed = PolicyChanged(tier_id=tier_id, changed_at_us=1)
        await control_plane.announce(POLICY_CHANGED, tier_id, changed)
    failed = 'quotagate_admission_loads_total{result="failed",what="policies"}'
    await world.admission.becomes_more(failed)
    assert (await world.edge.preflight(team_id)).decision is Decision.ALLOWED


async def test_a_full_redis_is_an_error_and_moves_nothing(world: World) -> None:
    await world.tier_cache.start_ready()
    await world.admission.start_ready()
    team = Team(await world.desk.open_team(await world.desk.open_tier(rpm=10**6)), world.redis)
    admitted = await world.edge.preflight(team.team_id)
    before = await team.snapshot()
    await world.redis.config_set("maxmemory", 1)
    with refused_with(ErrorCode.STORE_UNAVAILABLE):
        await world.edge.preflight(team.team_id)
    with refused_with(ErrorCode.STORE_UNAVAILABLE):
        await world.edge.postflight(team.team_id, admitted, Usage(input=1))
    assert await team.snapshot() == before
    await world.redis.config_set("maxmemory", 0)
    assert (await world.edge.preflight(team.team_id)).decision is Decision.ALLOWED


async def test_debts_that_only_a_stepped_clock_explains_are_cut_and_counted(world: World) -> None:
    await world.tier_cache.start_ready()
    await world.admission.start_ready()
    tier_id = await world.desk.open_tier(rpm=60, tpm=60_000)
    team = Team(await world.desk.open_team(tier_id), world.redis)
    year_ahead_us = await team.now_us() + 365 * DAY_US
    await team.put(request_tat_us=year_ahead_us, token_tat_us=year_ahead_us, tier=tier_id)
    assert (await world.edge.preflight(team.team_id)).decision is Decision.RATE_LIMITED
    now_us = await team.now_us()
    request_tat_us = await team.tat_us(team.keys.request_tat)
    token_tat_us = await team.tat_us(team.keys.token_tat)
    assert request_tat_us is not None
    assert token_tat_us is not None
    assert 0 < request_tat_us - now_us <= DAY_US
    # The longest debt of a hundred million tokens, a millisecond each.
    assert DAY_US < token_tat_us - now_us <= 100_000_000_000
    for limit in ("requests", "tokens"):
        sample = f'quotagate_admission_capped_tats_total{{limit="{limit}"}}'
        assert await world.admission.metric(sample) == 1
