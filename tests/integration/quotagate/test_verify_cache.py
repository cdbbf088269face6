"""Verify against Valkey: a cached balance is the settled one, unless something is on its way."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from integration.quotagate.scratch import Scratch
from redis.asyncio import Redis

from kit import background, redis
from kit.money import floor_nano_usd
from quotagate import stores
from quotagate.verify import Kind, Options, Report, verify
from redis_scripts import RedisScripts, SettledBalance
from redis_scripts.keys import team_keys
from tables import Account

OPTIONS = Options(with_stream=False, cache_wait_s=0.2)


@pytest.fixture
async def cache(scratch: Scratch) -> AsyncIterator[Redis]:
    """An empty cache."""
    client = redis.connect(scratch.settings)
    assert isinstance(client, Redis)
    await client.flushdb()
    yield client
    await client.flushdb()
    await client.aclose()


async def _settled(scratch: Scratch, team_id: str) -> SettledBalance:
    async with stores.database(scratch.settings) as engine, engine.connect() as connection:
        row = (
            await connection.execute(
                Account.__table__.select().where(Account.__table__.c.team_id == team_id)  # type: ignore[attr-defined] # SQLModel's own
            )
        ).one()
    return SettledBalance(floor_nano_usd(row.balance_usd), row.version)


async def _cached(cache: Redis, scratch: Scratch, team_id: str, drift_nano_usd: int = 0) -> None:
    """Cache a team's balance as settlement would, and then let it drift."""
    scripts = RedisScripts(cache)
    await scripts.refresh_balance(team_id, await _settled(scratch, team_id))
    await scripts.drain()
    await cache.incrby(team_keys(team_id).balance, drift_nano_usd)


async def _verified(scratch: Scratch, options: Options = OPTIONS) -> Report:
    report = await verify(scratch.settings, options)
    assert report.untold == []
    return report


async def test_cached_balances_that_agree_are_proved(scratch: Scratch, cache: Redis) -> None:
    for team_id in ("a", "b", "idle"):
        await _cached(cache, scratch, team_id)
    report = await _verified(scratch)
    assert report.counts == {}
    assert report.figures["cached_balances"] == 3


@pytest.mark.parametrize("drift_nano_usd", [-1, 1], ids=["a phantom debit", "a phantom credit"])
async def test_a_difference_of_one_nano_usd_that_stays_is_found(
    scratch: Scratch, cache: Redis, drift_nano_usd: int
) -> None:
    await _cached(cache, scratch, "a", drift_nano_usd)
    await _cached(cache, scratch, "idle")
    report = await _verified(scratch)
    assert report.counts == {Kind.CACHED_BALANCE: 1}
    assert report.findings[0].team_id == "a"


async def test_a_team_with_pending_records_is_not_judged(scratch: Scratch, cache: Redis) -> None:
    await _cached(cache, scratch, "b", -5)
    assert (await _verified(scratch)).counts == {}


async def test_a_lost_credit_is_found(scratch: Scratch, cache: Redis) -> None:
    """The cache still holds the version before."""
    scripts = RedisScripts(cache)
    await scripts.refresh_balance(
        "a", SettledBalance(1, (await _settled(scratch, "a")).version - 1)
    )
    await scripts.drain()
    assert (await _verified(scratch)).counts == {Kind.CACHED_BALANCE: 1}


async def test_a_version_that_the_account_never_had_is_found(
    scratch: Scratch, cache: Redis
) -> None:
    settled = await _settled(scratch, "a")
    scripts = RedisScripts(cache)
    await scripts.refresh_balance(
        "a", SettledBalance(settled.balance_nano_usd, settled.version + 1)
    )
    await scripts.drain()
    assert (await _verified(scratch)).counts == {Kind.CACHED_VERSION: 1}


async def test_a_balance_of_nobody_is_found(scratch: Scratch, cache: Redis) -> None:
    await cache.set(team_keys("nobody").balance, 5)
    assert (await _verified(scratch)).counts == {Kind.CACHED_WITHOUT_ACCOUNT: 1}


async def test_a_difference_that_moves_is_being_worked_on(scratch: Scratch, cache: Redis) -> None:
    """Calls in flight debit the cache all the time; whatever they leave is not judged."""
    await _cached(cache, scratch, "a", -5)

    async def debit_now_and_then() -> None:
        while True:
            await cache.decrby(team_keys("a").balance, 1)
            await asyncio.sleep(0.01)

    traffic = asyncio.create_task(debit_now_and_then())
    try:
        report = await _verified(scratch)
    finally:
        await background.cancel([traffic])
    assert report.counts == {}


async def test_a_difference_that_is_repaired_in_time_is_none(
    scratch: Scratch, cache: Redis
) -> None:
    await _cached(cache, scratch, "a", -5)
    looking = asyncio.create_task(
        verify(scratch.settings, Options(with_stream=False, cache_wait_s=60))
    )
    commands = cache.monitor()
    async with commands as monitor:
        async for command in monitor.listen():
            if command["command"].startswith("MGET"):
                break
    await cache.incrby(team_keys("a").balance, 5)
    assert (await looking).counts == {}


async def test_many_teams_are_compared_in_chunks(scratch: Scratch, cache: Redis) -> None:
    await scratch.falsify(
        "INSERT INTO team (team_id, name, tier_id) SELECT 'many-' || n, 'x', 'tier'"
        " FROM generate_series(1, 1200) AS n;"
        "INSERT INTO account (team_id) SELECT 'many-' || n FROM generate_series(1, 1200) AS n"
    )
    await cache.mset({team_keys(f"many-{n}").balance: int(n % 400 == 0) for n in range(1, 1201)})
    report = await _verified(scratch)
    assert report.counts == {Kind.CACHED_BALANCE: 3}
    assert report.figures["cached_balances"] == 1200


async def test_a_cache_that_does_not_answer_proves_nothing(scratch: Scratch) -> None:
    settings = scratch.settings.model_copy(
        update={"redis_url": type(scratch.settings.redis_url)("redis://127.0.0.1:1/0")}
    )
    report = await verify(settings, OPTIONS)
    assert report.counts == {}
    assert report.untold[0].startswith("redis:")
