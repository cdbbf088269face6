"""Fills: what is missing in Redis is read and put there, once, and never over something newer."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from integration.desk import Desk
from integration.tables.rows import add_record, new_name
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from contracts.cache import (
    BalanceFillRequest,
    DayFillRequest,
    SpendFillRequest,
    TierResolveRequest,
)
from contracts.errors import ErrorCode
from kit import postgres
from kit.bus.serving import ReplyError
from kit.calendar import days_around
from kit.clock import SystemClock
from redis_scripts import DayUsage, RedisScripts, Spend
from redis_scripts.keys import TeamKeys, day_counter, spend_counter, team_keys, version_of
from tables.prices import TOKEN_CLASSES
from tier_cache.domain.days import Day, Share
from tier_cache.domain.facts import PeriodSpend, TeamBalance, TeamTier
from tier_cache.domain.spends import Owed
from tier_cache.handlers.fills import Fills
from tier_cache.settings import Settings
from tier_cache.store import rows
from tier_cache.store.database import Database
from tier_cache.store.waiting import WaitingRecords

pytestmark = pytest.mark.usefixtures("far_from_midnight")

MINUTE_MS = 60_000
_INSTANTS = ("started_at", "finished_at")
_NO_TOKENS = tuple(f"{name}_tokens" for name in TOKEN_CLASSES)


class WatchedDatabase(Database):
    """The database, its reads counted, and held back once read until `pass_on` is set."""

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine)
        self.reads: list[str] = []
        self.was_read = asyncio.Event()
        self.pass_on = asyncio.Event()
        self.pass_on.set()

    async def tier(self, team_id: str) -> TeamTier | None:
        tier = await super().tier(team_id)
        await self._hold(team_id)
        return tier

    async def balance(self, team_id: str) -> TeamBalance | None:
        balance = await super().balance(team_id)
        await self._hold(team_id)
        return balance

    async def day(self, team_id: str, day: Day, waiting: Sequence[Share]) -> DayUsage | None:
        used = await super().day(team_id, day, waiting)
        await self._hold(team_id)
        return used

    async def spend(
        self, team_id: str, key_id: str | None, period: Day, waiting: Sequence[Owed]
    ) -> PeriodSpend | None:
        spent = await super().spend(team_id, key_id, period, waiting)
        await self._hold(team_id)
        return spent

    async def _hold(self, team_id: str) -> None:
        self.reads.append(team_id)
        self.was_read.set()
        await self.pass_on.wait()


@pytest.fixture
def database(engine: AsyncEngine) -> WatchedDatabase:
    return WatchedDatabase(engine)


@pytest.fixture
def fills(database: WatchedDatabase, scripts: RedisScripts, waiting: WaitingRecords) -> Fills:
    return Fills(database, scripts, waiting)


async def _stored(operator: Redis, team_id: str) -> dict[str, Any]:
    keys = team_keys(team_id)
    return dict(zip(TeamKeys._fields, await operator.mget(keys), strict=True))


async def test_a_tier_is_filled_for_five_to_six_minutes(
    desk: Desk, fills: Fills, operator: Redis
) -> None:
    tier_id = await desk.open_tier()
    team_id = await desk.open_team(tier_id)
    reply = await fills.resolve_tier(TierResolveRequest(team_id=team_id))
    assert (reply.found, reply.tier_id) == (True, tier_id)
    stored = await _stored(operator, team_id)
    assert (stored["tier"], stored["tier_version"]) == (tier_id.encode(), b"1")
    life_ms = await operator.pttl(team_keys(team_id).tier)
    assert 4 * MINUTE_MS < life_ms <= 6 * MINUTE_MS


@pytest.mark.parametrize(
    ("balance_usd", "nano_usd"),
    [
        pytest.param("0", b"0", id="a new account"),
        pytest.param("12.5", b"12500000000", id="dollars"),
        pytest.param("1.9999999999", b"1999999999", id="a fraction of a nano is rounded down"),
        pytest.param("-0.0000000001", b"-1", id="below zero is negative, however little"),
    ],
)
async def test_a_balance_is_filled_rounded_down(
    desk: Desk, fills: Fills, operator: Redis, balance_usd: str, nano_usd: bytes
) -> None:
    team_id = await desk.open_team(balance_usd=balance_usd)
    assert (await fills.fill_balance(BalanceFillRequest(team_id=team_id))).found
    stored = await _stored(operator, team_id)
    assert stored["balance"] == nano_usd
    assert stored["balance_version"] == (b"0" if balance_usd == "0" else b"1")
    life_ms = await operator.pttl(team_keys(team_id).balance)
    assert 59 * MINUTE_MS < life_ms <= 63 * MINUTE_MS


async def test_a_balance_that_is_there_keeps_its_rough_debits(
    desk: Desk, fills: Fills, operator: Redis
) -> None:
    team_id = await desk.open_team(balance_usd="1")
    await operator.set(team_keys(team_id).balance, 7)
    assert (await fills.fill_balance(BalanceFillRequest(team_id=team_id))).found
    assert (await _stored(operator, team_id))["balance"] == b"7"


async def test_an_unknown_or_deleted_team_fills_nothing(
    desk: Desk, fills: Fills, operator: Redis
) -> None:
    deleted = await desk.open_team()
    await desk.delete_team(deleted)
    for team_id in (deleted, "nobody-at-all"):
        assert not (await fills.resolve_tier(TierResolveRequest(team_id=team_id))).found
        assert not (await fills.fill_balance(BalanceFillRequest(team_id=team_id))).found
        assert set((await _stored(operator, team_id)).values()) == {None}


async def test_eight_misses_at_once_are_one_read_per_team(
    desk: Desk, database: WatchedDatabase, fills: Fills, operator: Redis
) -> None:
    teams = [await desk.open_team(balance_usd="1") for _ in range(3)]
    database.pass_on.clear()
    misses = [
        asyncio.create_task(fills.fill_balance(BalanceFillRequest(team_id=team_id)))
        for _ in range(8)
        for team_id in teams
    ]
    while len(database.reads) < len(teams):
        database.was_read.clear()
        await database.was_read.wait()
    database.pass_on.set()
    assert all(reply.found for reply in await asyncio.gather(*misses))
    assert sorted(database.reads) == sorted(teams)
    for team_id in teams:
        assert (await _stored(operator, team_id))["balance"] == b"1000000000"


async def test_a_late_tier_fill_does_not_bring_the_old_tier_back(
    desk: Desk, database: WatchedDatabase, fills: Fills, scripts: RedisScripts, operator: Redis
) -> None:
    team_id, new_tier = await desk.open_team(), await desk.open_tier()
    database.pass_on.clear()
    late = asyncio.create_task(fills.resolve_tier(TierResolveRequest(team_id=team_id)))
    await database.was_read.wait()  # it holds the old tier now
    version = await desk.move_team(team_id, new_tier)
    await scripts.evict_tier(team_id, version)
    database.pass_on.set()
    assert (await late).tier_id == new_tier
    assert (await _stored(operator, team_id))["tier"] == new_tier.encode()
    assert database.reads == [team_id] * 2


async def test_a_late_balance_fill_does_not_undo_a_credit(
    desk: Desk, database: WatchedDatabase, fills: Fills, scripts: RedisScripts, operator: Redis
) -> None:
    team_id = await desk.open_team(balance_usd="-1")
    database.pass_on.clear()
    late = asyncio.create_task(fills.fill_balance(BalanceFillRequest(team_id=team_id)))
    await database.was_read.wait()  # it holds the balance before the credit now
    entry = await desk.adjust(team_id, "10")
    await scripts.adjust_balance(team_id, 10 * 10**9, entry.account_version)
    database.pass_on.set()
    assert (await late).found
    assert (await _stored(operator, team_id))["balance"] == b"9000000000"


async def test_a_team_that_changes_at_every_read_is_given_up(
    desk: Desk,
    engine: AsyncEngine,
    scripts: RedisScripts,
    operator: Redis,
    waiting: WaitingRecords,
) -> None:
    class RestlessDatabase(Database):
        async def tier(self, team_id: str) -> TeamTier | None:
            tier = await super().tier(team_id)
            assert tier is not None
            await scripts.evict_tier(team_id, tier.version + 1)
            return tier

    team_id = await desk.open_team()
    fills = Fills(RestlessDatabase(engine), scripts, waiting)
    with pytest.raises(ReplyError) as caught:
        await fills.resolve_tier(TierResolveRequest(team_id=team_id))
    assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
    assert (await _stored(operator, team_id))["tier"] is None


async def test_the_wait_for_a_connection_is_bounded(
    desk: Desk,
    settings: Settings,
    scripts: RedisScripts,
    operator: Redis,
    waiting: WaitingRecords,
) -> None:
    team_id = await desk.open_team()
    narrow = settings.model_copy(update={"database_connections": 1, "database_timeout_s": 0.2})
    engine = postgres.connect(narrow)
    try:
        async with engine.connect():  # the only one
            with pytest.raises(ReplyError) as caught:
                await Fills(Database(engine), scripts, waiting).resolve_tier(
                    TierResolveRequest(team_id=team_id)
                )
        assert caught.value.code is ErrorCode.STORE_UNAVAILABLE
        assert (await _stored(operator, team_id))["tier"] is None
        reply = await Fills(Database(engine), scripts, waiting).resolve_tier(
            TierResolveRequest(team_id=team_id)
        )
        assert reply.found
    finally:
        await engine.dispose()


async def test_a_caller_who_leaves_does_not_stop_the_fill_of_others(
    desk: Desk, database: WatchedDatabase, fills: Fills
) -> None:
    team_id = await desk.open_team()
    database.pass_on.clear()
    request = TierResolveRequest(team_id=team_id)
    leaver = asyncio.create_task(fills.resolve_tier(request))
    stayer = asyncio.create_task(fills.resolve_tier(request))
    await database.was_read.wait()
    leaver.cancel()
    database.pass_on.set()
    assert (await stayer).found
    assert database.reads == [team_id]


TODAY_US, TOMORROW_US = 20_000 * 86_400_000_000, 20_001 * 86_400_000_000


async def _at(settlement: AsyncEngine, team_id: str, **record: Any) -> None:
    """Store a record that nothing here settles; instants are microseconds of today."""
    instants = {
        name: rows.instant(TODAY_US + record.pop(name)) for name in _INSTANTS if name in record
    }
    await add_record(settlement, team_id, state="UNBILLABLE", **record, **instants)


async def test_eight_who_miss_a_day_cause_one_query_that_counts_its_records(
    desk: Desk,
    fills: Fills,
    database: WatchedDatabase,
    operator: Redis,
    settlement: AsyncEngine,
) -> None:
    team_id = await desk.open_team()
    last_us = TOMORROW_US - TODAY_US - 1
    await _at(settlement, team_id, started_at=0, input_tokens=1, output_tokens=2)
    await _at(settlement, team_id, started_at=last_us, input_tokens=20)
    await _at(settlement, team_id, started_at=5, attempt_no=2, input_tokens=300)
    # Began yesterday and ended today; began today and ended tomorrow; yesterday; tomorrow.
    await _at(settlement, team_id, started_at=-1, finished_at=1, input_tokens=4_000)
    await _at(settlement, team_id, started_at=9, finished_at=last_us + 1, input_tokens=50_000)
    await _at(settlement, team_id, started_at=-1, input_tokens=600_000)
    await _at(settlement, team_id, started_at=last_us + 1, input_tokens=7_000_000)
    await _at(settlement, await desk.open_team(), started_at=1, input_tokens=80_000_000)
    unknown = dict.fromkeys(_NO_TOKENS)
    await _at(settlement, team_id, started_at=7, **unknown)
    request = DayFillRequest(team_id=team_id, start_us=TODAY_US, end_us=TOMORROW_US)

    replies = await asyncio.gather(*(fills.fill_day(request) for _ in range(8)))

    assert all(reply.found for reply in replies)
    assert database.reads == [team_id]
    # That day is long over, so what was filled expires at once; the database is asked itself.
    used = await database.day(team_id, Day(TODAY_US, TOMORROW_US), ())
    assert used == DayUsage(TODAY_US, TOMORROW_US, 4, 4_323)


async def test_a_day_is_filled_once_and_expires_after_it(
    desk: Desk, fills: Fills, operator: Redis
) -> None:
    team_id = await desk.open_team()
    seconds, _ = await operator.time()
    start_us = seconds // 86_400 * 86_400_000_000
    end_us = start_us + 86_400_000_000
    request = DayFillRequest(team_id=team_id, start_us=start_us, end_us=end_us)
    for _ in range(2):
        assert (await fills.fill_day(request)).found
    names = [day_counter(start_us, end_us, what).of(team_id) for what in ("requests", "tokens")]
    assert await operator.mget(names) == [b"0", b"0"]
    life_ms = await operator.pexpiretime(names[0]) - end_us // 1_000
    assert 60 * MINUTE_MS <= life_ms <= 63 * MINUTE_MS


async def test_a_day_of_nobody_is_not_filled(fills: Fills, operator: Redis) -> None:
    request = DayFillRequest(team_id="nobody", start_us=TODAY_US, end_us=TOMORROW_US)
    assert not (await fills.fill_day(request)).found
    assert [key async for key in operator.scan_iter("quota:{nobody}:*")] == []


def _today() -> tuple[int, int]:
    now_us = SystemClock().now_us()
    return days_around(now_us, "UTC").period_of(now_us)


async def _count(operator: Redis, team_id: str, key_id: str | None) -> tuple[Any, Any]:
    place = spend_counter(*_today(), key_id)
    names = [place.of(team_id), version_of(place).of(team_id)]
    spent, version = await operator.mget(names)
    return spent, version


async def _spend(settlement: AsyncEngine, desk: Desk, team_id: str, **record: Any) -> None:
    """Store a pending record of one dollar a token that ends now, unless it says otherwise."""
    price_id = await desk.add_price(new_name("model"), input="1000000", output="1000000")
    now = rows.instant(SystemClock().now_us())
    values = {"started_at": now, "price_id": price_id, "state": "PENDING", **_ZEROS} | record
    await add_record(settlement, team_id, **values)


_ZEROS = dict.fromkeys(_NO_TOKENS, 0)


async def test_spend_is_filled_from_what_is_pending_too(
    desk: Desk, fills: Fills, operator: Redis, settlement: AsyncEngine
) -> None:
    start_us, end_us = _today()
    team_id = await desk.open_team(balance_usd="5")
    yesterday = rows.instant(start_us - 1)
    await _spend(settlement, desk, team_id, input_tokens=2, api_key_id="k1")
    await _spend(settlement, desk, team_id, output_tokens=1, api_key_id="k2")
    await _spend(settlement, desk, team_id, input_tokens=40, started_at=yesterday)
    await _spend(
        settlement, desk, team_id, input_tokens=8, started_at=yesterday,
        finished_at=rows.instant(start_us), api_key_id="k1",
    )  # fmt: skip
    await _spend(settlement, desk, team_id, input_tokens=99, price_id="no price at all")
    await _spend(settlement, desk, team_id, input_tokens=99, state="UNBILLABLE")
    await _spend(settlement, desk, await desk.open_team(), input_tokens=99)

    for key_id in (None, "k1", "k3"):
        request = SpendFillRequest(team_id=team_id, key_id=key_id, start_us=start_us, end_us=end_us)
        replies = await asyncio.gather(*(fills.fill_spend(request) for _ in range(8)))
        assert all(reply.found for reply in replies)

    assert await _count(operator, team_id, None) == (b"11000000000", b"1")
    assert await _count(operator, team_id, "k1") == (b"10000000000", b"1")
    assert await _count(operator, team_id, "k3") == (b"0", b"1")
    life_ms = await operator.pexpiretime(spend_counter(start_us, end_us, None).of(team_id))
    assert 60 * MINUTE_MS <= life_ms - end_us // 1_000 <= 63 * MINUTE_MS


async def test_spend_that_is_counted_keeps_its_rough_debits_and_nobodys_is_not_filled(
    desk: Desk, fills: Fills, operator: Redis
) -> None:
    start_us, end_us = _today()
    team_id = await desk.open_team()
    await operator.set(spend_counter(start_us, end_us, None).of(team_id), 7)
    request = SpendFillRequest(team_id=team_id, start_us=start_us, end_us=end_us)
    assert (await fills.fill_spend(request)).found
    assert (await _count(operator, team_id, None))[0] == b"7"
    await desk.delete_team(team_id)
    for nobody in (team_id, "nobody-at-all"):
        request = SpendFillRequest(team_id=nobody, start_us=start_us, end_us=end_us)
        assert not (await fills.fill_spend(request)).found


async def test_a_late_spend_fill_does_not_undo_a_settlement(
    desk: Desk, database: WatchedDatabase, fills: Fills, scripts: RedisScripts, operator: Redis
) -> None:
    """The counter is settled and lost again while the fill holds what it read before."""
    start_us, end_us = _today()
    team_id = await desk.open_team(balance_usd="1")
    database.pass_on.clear()
    request = SpendFillRequest(team_id=team_id, start_us=start_us, end_us=end_us)
    late = asyncio.create_task(fills.fill_spend(request))
    await database.was_read.wait()
    await desk.adjust(team_id, "1")
    await scripts.refresh_spend(team_id, Spend(None, start_us, end_us, 5, 2))
    await operator.delete(spend_counter(start_us, end_us, None).of(team_id))
    database.pass_on.set()
    assert (await late).found
    assert database.reads == [team_id] * 2
    assert await _count(operator, team_id, None) == (b"0", b"2")
