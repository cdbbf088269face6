"""Calls share pipelines, heal an empty script cache, and are never sent twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from integration.redis_scripts.clients import connect
from integration.redis_scripts.proxy import Proxy, proxy_to
from integration.redis_scripts.team import Team
from integration.redis_scripts.terms import CAPS, PLAIN, terms_of
from redis.asyncio import Redis

from kit.redis import RedisClient
from quotagate.stack import Servers
from redis_scripts import (
    Charge,
    InvalidTeamIdError,
    NotDoneError,
    OutcomeUnknownError,
    RedisScripts,
    Verdict,
)

TEN = Charge(0, 10, CAPS)


async def executions(operator: Redis) -> int:
    """Return how many scripts the server has run since the counters were reset."""
    stats = await operator.info("commandstats")
    return sum(
        stats[f"cmdstat_{command}"]["calls"] - stats[f"cmdstat_{command}"]["failed_calls"]
        for command in ("eval", "evalsha")
        if f"cmdstat_{command}" in stats
    )


@pytest.fixture
async def proxy(servers: Servers) -> AsyncIterator[Proxy]:
    address = urlsplit(servers.redis_url)
    assert address.hostname is not None
    assert address.port is not None
    async with proxy_to(address.hostname, address.port) as proxy:
        yield proxy


@asynccontextmanager
async def scripts_of(client: RedisClient) -> AsyncIterator[RedisScripts]:
    scripts = RedisScripts(client)
    try:
        yield scripts
    finally:
        await scripts.drain()
        await client.aclose()


@asynccontextmanager
async def scripts_through(
    proxy: Proxy, servers: Servers, timeout_ms: int
) -> AsyncIterator[RedisScripts]:
    userinfo = urlsplit(servers.redis_url).netloc.rpartition("@")[0]
    client = connect(f"redis://{userinfo}@127.0.0.1:{proxy.port}/0", timeout_ms=timeout_ms)
    async with scripts_of(client) as scripts:
        yield scripts


@pytest.fixture
async def distant(servers: Servers, proxy: Proxy) -> AsyncIterator[RedisScripts]:
    """The scripts through the proxy; nothing of these tests takes as long as the time-out."""
    async with scripts_through(proxy, servers, 60_000) as scripts:
        yield scripts


async def test_calls_that_wait_together_travel_together(
    scripts: RedisScripts, operator: Redis, team: Team
) -> None:
    await team.put(balance_nano_usd=1_000)
    await asyncio.gather(*(scripts.postflight(team.team_id, TEN) for _ in range(3)))
    before = await operator.info("stats")
    await asyncio.gather(*(scripts.postflight(team.team_id, TEN) for _ in range(64)))
    after = await operator.info("stats")
    # A read event takes in a whole pipeline; one is this question itself.
    reads = after["total_reads_processed"] - before["total_reads_processed"]
    assert reads < 64
    assert await team.redis.get(team.keys.balance) == str(1_000 - 67 * 10).encode()


async def test_an_empty_script_cache_heals_and_every_call_runs_once(
    scripts: RedisScripts, operator: Redis, team: Team
) -> None:
    await team.put(balance_nano_usd=1_000)
    await operator.script_flush()
    await operator.config_resetstat()

    calls = [scripts.postflight(team.team_id, TEN) for _ in range(20)]
    mixed = [scripts.preflight(team.team_id, terms_of(PLAIN)), scripts.limits_state(team.team_id)]
    await asyncio.gather(*calls, *mixed)

    assert await team.redis.get(team.keys.balance) == b"800"
    assert await executions(operator) == 22
    await operator.config_resetstat()
    await scripts.postflight(team.team_id, TEN)
    stats = await operator.info("commandstats")
    assert "cmdstat_eval" not in stats
    assert stats["cmdstat_evalsha"]["calls"] == 1


async def test_an_error_of_one_script_is_its_own(scripts: RedisScripts, team: Team) -> None:
    other = Team(f"{team.team_id}-broken", team.redis)
    await team.put(balance_nano_usd=1_000)
    await other.put(balance_nano_usd=-(2**63))
    outcomes = await asyncio.gather(
        scripts.postflight(team.team_id, TEN),
        scripts.postflight(other.team_id, TEN),
        scripts.preflight(team.team_id, terms_of(PLAIN)),
        scripts.postflight("not a team id", TEN),
        return_exceptions=True,
    )
    first, broken, admitted, invalid = outcomes
    assert getattr(first, "balance_nano_usd", None) == 990
    assert isinstance(broken, NotDoneError)
    assert getattr(admitted, "verdict", None) is Verdict.ADMITTED
    assert isinstance(invalid, InvalidTeamIdError)


async def test_a_lost_reply_is_an_unknown_outcome_and_one_execution(
    distant: RedisScripts, proxy: Proxy, operator: Redis, team: Team
) -> None:
    await team.put(balance_nano_usd=1_000)
    await distant.limits_state(team.team_id)
    await operator.config_resetstat()
    proxy.replies.clear()

    call = asyncio.create_task(distant.postflight(team.team_id, TEN))
    await proxy.held.wait()
    proxy.cut()
    with pytest.raises(OutcomeUnknownError):
        await call

    assert await executions(operator) == 1
    assert await team.redis.get(team.keys.balance) == b"990"


async def test_a_late_reply_is_an_unknown_outcome_and_answers_nobody_else(
    servers: Servers, proxy: Proxy, operator: Redis, team: Team
) -> None:
    await team.put(balance_nano_usd=1_000)
    await operator.config_resetstat()
    async with scripts_through(proxy, servers, 1_000) as hasty:
        await hasty.limits_state(team.team_id)
        proxy.replies.clear()

        calls = [hasty.postflight(team.team_id, TEN) for _ in range(3)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)

        assert [type(outcome) for outcome in outcomes] == [OutcomeUnknownError] * 3
        assert await executions(operator) == 4
        proxy.replies.set()
        state = await hasty.limits_state(team.team_id)
        assert state.balance_nano_usd == 970
        reply = await hasty.preflight(team.team_id, terms_of(PLAIN))
        assert reply.verdict is Verdict.ADMITTED


async def test_no_server_is_an_error_at_once(team: Team, servers: Servers) -> None:
    async with scripts_of(connect("redis://127.0.0.1:1/0")) as scripts:
        with pytest.raises(OutcomeUnknownError):
            await scripts.postflight(team.team_id, TEN)


async def test_a_caller_who_leaves_before_the_batch_does_is_not_sent(
    scripts: RedisScripts, operator: Redis, team: Team
) -> None:
    await team.put(balance_nano_usd=1_000)
    await operator.config_resetstat()
    leaving = asyncio.create_task(scripts.postflight(team.team_id, TEN))
    staying = asyncio.create_task(scripts.postflight(team.team_id, TEN))
    # Cancelled before its first step, and while its call waits for the batch.
    leaving.cancel()
    queued = asyncio.create_task(scripts.postflight(team.team_id, TEN))
    asyncio.get_running_loop().call_soon(queued.cancel)

    reply = await staying

    assert reply.balance_nano_usd == 990
    assert leaving.cancelled()
    assert await executions(operator) == 1


async def test_a_caller_who_leaves_later_doesnt_disturb_the_others(
    distant: RedisScripts, proxy: Proxy, team: Team
) -> None:
    await team.put(balance_nano_usd=1_000)
    await distant.limits_state(team.team_id)
    proxy.replies.clear()
    leaving = asyncio.create_task(distant.postflight(team.team_id, TEN))
    staying = asyncio.create_task(distant.postflight(team.team_id, TEN))
    await proxy.held.wait()

    leaving.cancel()
    proxy.replies.set()

    reply = await staying
    assert reply.balance_nano_usd == 980
    assert (await distant.limits_state(team.team_id)).balance_nano_usd == 980


async def test_a_caller_who_leaves_before_a_script_is_known_is_not_sent_again(
    distant: RedisScripts, proxy: Proxy, operator: Redis, team: Team
) -> None:
    await team.put(balance_nano_usd=1_000)
    await distant.limits_state(team.team_id)
    await operator.script_flush()
    await operator.config_resetstat()
    proxy.replies.clear()
    leaving = asyncio.create_task(distant.postflight(team.team_id, TEN))
    staying = asyncio.create_task(distant.postflight(team.team_id, TEN))
    await proxy.held.wait()

    leaving.cancel()
    await asyncio.wait([leaving])
    proxy.replies.set()

    assert (await staying).balance_nano_usd == 990
    assert await executions(operator) == 1


@pytest.mark.parametrize("service", ["admission", "tier-cache", "settlement"])
async def test_each_service_may_run_the_scripts(
    servers: Servers, operator: Redis, team: Team, service: str
) -> None:
    await operator.script_flush()
    client = connect(servers.redis_urls[service])
    scripts = RedisScripts(client)
    assert (await scripts.limits_state(team.team_id)).tier_id is None
    assert (await scripts.fill_tier(team.team_id, "tier_1", 1)) == "filled"
    await scripts.drain()
    await client.aclose()


async def test_connections_that_broke_while_they_waited_cost_one_batch(
    distant: RedisScripts, proxy: Proxy, team: Team
) -> None:
    await team.put(balance_nano_usd=1_000)
    await distant.limits_state(team.team_id)
    proxy.replies.clear()
    calls = []
    for _ in range(4):  # each batch has a connection of its own
        calls.append(asyncio.create_task(distant.limits_state(team.team_id)))
        await asyncio.sleep(0.01)
    proxy.replies.set()
    await asyncio.gather(*calls)

    proxy.cut()
    with pytest.raises(OutcomeUnknownError):
        await distant.limits_state(team.team_id)

    for _ in range(4):
        assert (await distant.limits_state(team.team_id)).balance_nano_usd == 1_000


async def test_the_only_connection_is_not_kept_from_other_commands(
    servers: Servers, team: Team
) -> None:
    await team.put(balance_nano_usd=1_000)
    client = connect(servers.redis_url, connections=1)
    async with scripts_of(client) as scripts:
        for _ in range(2):
            assert (await scripts.limits_state(team.team_id)).balance_nano_usd == 1_000
            assert await client.ping()
