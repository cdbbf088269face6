"""What was spent in a period: summed up exactly, told once, and only for who has a limit."""

import asyncio
import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from integration.settlement.books import Books
from integration.settlement.settling import NEVER, settle_all, store
from integration.settlement.team import CallingTeam
from integration.settlement.world import World
from integration.tables.rows import new_name
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from contracts.contract import decode
from contracts.control import SPEND_THRESHOLD, SpendThreshold
from contracts.inference import InferenceRecord
from contracts.usage import Usage
from kit.calendar import days_around, months_around
from kit.clock import SystemClock
from redis_scripts.keys import spend_counter, version_of
from settlement.handlers.backlog import Backlog
from settlement.handlers.forget_spend import ForgetSpend
from settlement.handlers.settle import Settle
from settlement.settings import Settings
from settlement.store.accounts import AccountStore
from settlement.store.balances import BalanceCache
from settlement.store.records import RecordStore
from settlement.store.spend_books import SpendBooks
from settlement.store.spending import limits_of

pytestmark = pytest.mark.usefixtures("far_from_midnight")

BERLIN = "Europe/Berlin"
ONE_USD = Usage(input=1_000_000)
DAY_OF_10: dict[str, Any] = {"period": "day", "limit_usd": "10"}


async def open_team(world: World, *limits: dict[str, Any], time_zone: str = "UTC") -> CallingTeam:
    """Open a team with $1,000 whose tier has these limits of spend."""
    tier_id = await world.desk.open_tier(spend_limits=list(limits), time_zone=time_zone)
    team_id = await world.desk.open_team(tier_id, balance_usd="1000")
    price_id = await world.desk.add_price(new_name("model"))
    return TodaysTeam(team_id, price_id, world.edge, world.nats)


async def test_limits_that_cannot_be_keep_nobody_from_being_charged_nor_others_from_being_told(
    world: World, engine: AsyncEngine
) -> None:
    team = await open_team(world, DAY_OF_10)
    for key_id, amount in (("bad", "NaN"), ("good", "5")):
        limits = {"spend_limits": [{"period": "day", "scope": "key", "limit_usd": amount}]}
        await world.desk.add_key(team.team_id, f"{key_id}-{team.team_id}"[:64], limits=limits)
    async with engine.connect() as connection:
        found = (await limits_of(connection, [team.team_id]))[team.team_id]
    assert [limit.limit_usd for limit in found.tier] == [Decimal(10)]
    (bad, none), (good, (own,)) = sorted(found.keys.items())
    assert (bad[:3], none, good[:4], own.limit_usd) == ("bad", (), "good", Decimal(5))


class TodaysTeam(CallingTeam):
    """Its calls end now: what Redis counts of a period that is over is gone at once."""

    def record(self, **changes: Any) -> InferenceRecord:
        now_us = SystemClock().now_us()
        return super().record(**({"started_at_us": now_us, "finished_at_us": now_us} | changes))


def today() -> tuple[int, int]:
    now_us = SystemClock().now_us()
    return days_around(now_us, "UTC").period_of(now_us)


async def spend_rows(engine: AsyncEngine, team: CallingTeam) -> dict[tuple[str, int], Decimal]:
    """Return what is stored, by key ('' is the team) and length of the period in hours."""
    query = text("SELECT * FROM spend WHERE team_id = :team_id")
    async with engine.connect() as connection:
        rows = (await connection.execute(query, {"team_id": team.team_id})).all()
    return {
        (row.api_key_id, int((row.ends_at - row.starts_at).total_seconds()) // 3600): row.amount_usd
        for row in rows
    }


async def told(world: World, team: CallingTeam) -> list[SpendThreshold]:
    """Return the events that are owed to the bus; the webhook is owed the same."""
    books = world.books
    subject = SPEND_THRESHOLD.subject_for(team.team_id)
    async with books._owner.connect() as connection:
        query = "SELECT message_id, payload FROM outbox WHERE subject = :subject ORDER BY id"
        events = (await connection.execute(text(query), {"subject": subject})).all()
        query = (
            "SELECT message_id, payload, kind FROM webhook_delivery WHERE message_id = ANY(:ids)"
        )
        ids = [event.message_id for event in events]
        owed = (await connection.execute(text(query), {"ids": ids})).all()
    assert {(row.message_id, row.payload) for row in owed} == {tuple(event) for event in events}
    assert {row.kind for row in owed} <= {"spend.threshold"}
    return [decode(event.payload, SpendThreshold) for event in events]


async def counted(world: World, team: CallingTeam, period: tuple[int, int], key: str | None) -> Any:
    place = spend_counter(*period, key)
    names = [place.of(team.team_id), version_of(place).of(team.team_id)]
    spent, version = await world.redis.mget(names)
    return None if spent is None else (int(spent), int(version or -1))


async def test_a_charge_counts_in_the_day_and_month_its_attempt_ended_in_its_zone(
    world: World, records: RecordStore, settle: Settle, engine: AsyncEngine
) -> None:
    team = await open_team(
        world,
        DAY_OF_10,
        {"period": "month", "limit_usd": "100"},
        {"period": "day", "scope": "key", "limit_usd": "5"},
        time_zone=BERLIN,
    )
    now_us = SystemClock().now_us()
    day, month = (
        around(now_us, BERLIN).period_of(now_us) for around in (days_around, months_around)
    )
    before_us = day[0] - 1
    await store(
        records,
        team.record(api_key_id="k1", usage=ONE_USD, started_at_us=before_us, finished_at_us=now_us),
        team.record(
            api_key_id="k2", usage=Usage(input=3), started_at_us=day[0], finished_at_us=None
        ),
        team.record(
            api_key_id="k1", usage=ONE_USD, started_at_us=before_us, finished_at_us=before_us
        ),
    )
    await settle.once_around(NEVER)
    assert await counted(world, team, day, None) == (1_000_003_000, 2)
    is_first = before_us < month[0]
    in_month = 1_000_003_000 if is_first else 2_000_003_000
    assert await counted(world, team, month, None) == (in_month, 2)
    assert await counted(world, team, day, "k1") == (1_000_000_000, 2)
    assert await counted(world, team, day, "k2") == (3_000, 2)


async def test_teams_without_limits_have_no_rows(
    team: CallingTeam, records: RecordStore, settle: Settle, engine: AsyncEngine
) -> None:
    await store(records, team.record())
    await settle.once_around(NEVER)
    assert await spend_rows(engine, team) == {}


async def test_less_than_a_nano_is_summed_exactly_and_counted_rounded_up(
    world: World, records: RecordStore, settle: Settle, engine: AsyncEngine
) -> None:
    team = await open_team(world, DAY_OF_10)
    price_id = await world.desk.add_price(new_name("model"), input="0.0000000000000000000001")
    await store(records, *(team.record(price_id=price_id, usage=Usage(input=1)) for _ in range(3)))
    await settle.once_around(NEVER)
    assert await spend_rows(engine, team) == {("", 24): Decimal("3E-28")}
    day = today()
    assert await counted(world, team, day, None) == (1, 2)


async def test_what_a_new_limit_finds_was_spent_before_it(
    world: World, records: RecordStore, settle: Settle, engine: AsyncEngine
) -> None:
    """The limit comes, goes and comes back; what was charged without it is not lost."""
    team = await open_team(world, time_zone="UTC")
    tiers = {
        "with": await world.desk.open_tier(spend_limits=[DAY_OF_10]),
        "without": await world.desk.open_tier(),
    }
    for number, tier in enumerate(("without", "with", "without", "with"), 1):
        await world.desk.move_team(team.team_id, tiers[tier])
        await store(records, team.record(usage=ONE_USD))
        await settle.once_around(NEVER)
        await world.desk.adjust(team.team_id, "1")
        expected = {} if number == 1 else {("", 24): Decimal(number if tier == "with" else 2)}
        assert await spend_rows(engine, team) == expected


async def test_a_long_history_is_summed_up_in_steps(
    world: World,
    records: RecordStore,
    settle: Settle,
    engine: AsyncEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("settlement.store.spending._MOST_ENTRIES", 2)
    team = await open_team(world)
    for _ in range(3):
        await store(records, team.record(usage=ONE_USD))
        await settle.once_around(NEVER)
    limited = await world.desk.open_tier(spend_limits=[DAY_OF_10])
    await world.desk.move_team(team.team_id, limited)
    day = today()
    seen: list[tuple[Any, Any]] = []
    for _ in range(3):
        await store(records, team.record(usage=ONE_USD))
        await settle.once_around(NEVER)
        seen.append(
            ((await spend_rows(engine, team))["", 24], await counted(world, team, day, None))
        )
    # The first entry is the credit. Until all is summed up, the cache isn't told.
    assert seen == [(1, None), (3, None), (5, None)]
    await store(records, team.record(usage=ONE_USD))
    monkeypatch.setattr("settlement.store.spending._MOST_ENTRIES", 1_000)
    await settle.once_around(NEVER)
    assert await counted(world, team, day, None) == (7_000_000_000, 8)


async def test_each_threshold_is_told_once_with_several_workers_and_replays(
    world: World,
    records: RecordStore,
    accounts: AccountStore,
    balances: BalanceCache,
    small: Settings,
) -> None:
    team = await open_team(world, DAY_OF_10, {"period": "day", "scope": "key", "limit_usd": "9"})
    written = [team.record(api_key_id="k1", usage=ONE_USD) for _ in range(9)]
    await store(records, *written)
    await settle_all(*(Settle(records, accounts, balances, Backlog(), small) for _ in range(3)))
    await store(records, *written)
    await store(records, team.record(api_key_id="k1", usage=Usage(input=1)))
    await settle_all(*(Settle(records, accounts, balances, Backlog(), small) for _ in range(3)))
    events = await told(world, team)
    assert sorted((event.key_id or "", event.threshold_percent) for event in events) == [
        *(("", percent) for percent in (50, 80)),
        *(("k1", percent) for percent in (50, 80, 95, 100)),
    ]
    for event in events:
        assert event.spent_usd * 100 >= event.limit_usd * event.threshold_percent
        assert (event.period, event.mode) == ("day", "hard")
        assert event.ends_at_us - event.starts_at_us == 86_400_000_000


@pytest.mark.parametrize(
    ("limit", "percents"),
    [
        pytest.param({"limit_usd": "2", "thresholds": [50]}, [50], id="one, just reached"),
        pytest.param({"limit_usd": "2.000000001", "thresholds": [50]}, [], id="a nano below"),
        pytest.param({"limit_usd": "1", "mode": "soft"}, [50, 80, 95, 100], id="soft"),
        pytest.param({"limit_usd": "0"}, [], id="a limit that blocks has nothing to warn of"),
        pytest.param({"limit_usd": None}, [], id="no limit"),
        pytest.param({"limit_usd": "1", "thresholds": []}, [], id="no thresholds"),
        pytest.param({"limit_usd": "0.5", "thresholds": [200, 201]}, [200], id="beyond the limit"),
    ],
)
async def test_which_thresholds_are_told(
    world: World,
    records: RecordStore,
    settle: Settle,
    limit: dict[str, Any],
    percents: list[int],
) -> None:
    team = await open_team(world, {"period": "month"} | limit)
    await store(records, team.record(usage=ONE_USD))
    await settle.once_around(NEVER)
    assert [event.threshold_percent for event in await told(world, team)] == percents


async def test_another_limit_is_another_threshold(
    world: World, records: RecordStore, settle: Settle
) -> None:
    team = await open_team(world, {"period": "day", "limit_usd": "2", "thresholds": [50]})
    await store(records, team.record(usage=ONE_USD))
    await settle.once_around(NEVER)
    higher = {"period": "day", "limit_usd": "3", "thresholds": [50]}
    await world.desk.move_team(team.team_id, await world.desk.open_tier(spend_limits=[higher]))
    for _ in range(2):
        await store(records, team.record(usage=ONE_USD))
        await settle.once_around(NEVER)
    assert [event.limit_usd for event in await told(world, team)] == [2, 3]


async def test_a_keys_own_limit_takes_the_place_of_every_keys(
    world: World, records: RecordStore, settle: Settle, engine: AsyncEngine
) -> None:
    every = {"period": "day", "scope": "key", "limit_usd": "1", "thresholds": [100]}
    team = await open_team(world, every)
    own = every | {"limit_usd": "4", "thresholds": [25]}
    rich = await world.desk.add_key(team.team_id, limits={"spend_limits": [own]})
    free = await world.desk.add_key(
        team.team_id, limits={"spend_limits": [every | {"limit_usd": None}]}
    )
    await store(
        records, *(team.record(api_key_id=key, usage=ONE_USD) for key in (rich, free, "another"))
    )
    await settle.once_around(NEVER)
    assert {(e.key_id, e.threshold_percent) for e in await told(world, team)} == {
        (rich, 25),
        ("another", 100),
    }
    assert set(await spend_rows(engine, team)) == {(rich, 24), ("another", 24)}


async def test_what_was_rolled_back_is_told_by_nobody(
    world: World,
    records: RecordStore,
    accounts: AccountStore,
    settle: Settle,
    engine: AsyncEngine,
) -> None:
    team = await open_team(world, {"period": "day", "limit_usd": "1"})
    record = team.record(usage=ONE_USD)
    await store(records, record)
    with pytest.raises(ZeroDivisionError):
        await _charge_and_fail(accounts, team)
    assert await told(world, team) == []
    assert await spend_rows(engine, team) == {}
    await settle.once_around(NEVER)
    assert len(await told(world, team)) == 4


async def _charge_and_fail(accounts: AccountStore, team: CallingTeam) -> None:
    from settlement.domain.settling import account_batches

    async with accounts.charging() as charging:
        locked = await charging.lock([team.team_id])
        pending = await charging.pending(locked, 10)
        batches = account_batches(pending, await charging.prices(pending))
        spend = await charging.spend(pending, await charging.post(batches))
        assert len(spend.crossed) == 4
        raise ZeroDivisionError


async def test_limits_that_cannot_be_read_keep_nobody_from_being_charged(
    world: World, records: RecordStore, settle: Settle, books: Books
) -> None:
    for limits in ({"spend_limits": [{"period": "year"}]}, {"time_zone": "Mars/Base"}):
        tier_id = await world.desk.open_tier(**({"spend_limits": [DAY_OF_10]} | limits))
        team_id = await world.desk.open_team(tier_id, balance_usd="10")
        team = CallingTeam(team_id, (await world.open_team()).price_id, world.edge, world.nats)
        await store(records, team.record())
        await settle.once_around(NEVER)
        assert await books.charges(team_id) == [Decimal("0.001")]


async def test_a_time_that_no_calendar_has_is_charged_and_counts_nowhere(
    world: World, records: RecordStore, settle: Settle, engine: AsyncEngine, books: Books
) -> None:
    team = await open_team(world, DAY_OF_10)
    last_us = 253_402_300_799_000_000
    await store(records, team.record(usage=ONE_USD, finished_at_us=last_us))
    await store(records, team.record(usage=ONE_USD))
    await settle.once_around(NEVER)
    assert await books.charges(team.team_id) == [1, 1]
    assert await spend_rows(engine, team) == {("", 24): 1}


async def test_spend_is_what_the_charges_say_after_many_workers(
    world: World,
    records: RecordStore,
    accounts: AccountStore,
    balances: BalanceCache,
    small: Settings,
    engine: AsyncEngine,
    books: Books,
) -> None:
    team = await open_team(world, DAY_OF_10, {"period": "day", "scope": "key", "limit_usd": "1"})
    workers = [Settle(records, accounts, balances, Backlog(), small) for _ in range(3)]
    for round_ in range(3):
        await store(
            records,
            *(
                team.record(api_key_id=f"k{n % 3}", usage=Usage(input=n + round_))
                for n in range(20)
            ),
        )
        await asyncio.gather(settle_all(*workers), world.desk.adjust(team.team_id, "1"))
    # Whoever found the account held by the adjustment left it for later.
    await settle_all(*workers)
    rows = await spend_rows(engine, team)
    assert rows["", 24] == sum(await books.charges(team.team_id))
    assert sum(amount for (key, _), amount in rows.items() if key) == rows["", 24]
    spent, _ = await counted(world, team, today(), None)
    assert spent == int(rows["", 24] * 10**9)


async def test_the_event_is_written_for_receivers_of_all_kinds(
    world: World, records: RecordStore, settle: Settle
) -> None:
    team = await open_team(world, {"period": "day", "limit_usd": "0.000000001", "thresholds": [1]})
    price_id = await world.desk.add_price(new_name("model"), input="0.0001")
    await store(records, team.record(price_id=price_id, usage=Usage(input=1)))
    await settle.once_around(NEVER)
    [event] = await told(world, team)
    assert event.limit_usd == Decimal("1E-9")
    async with world.books._owner.connect() as connection:
        query = text("SELECT payload FROM outbox WHERE subject = :subject")
        subject = SPEND_THRESHOLD.subject_for(team.team_id)
        payload = (await connection.execute(query, {"subject": subject})).scalar_one()
    written = json.loads(payload)
    assert (written["limit_usd"], written["spent_usd"]) == ("0.000000001", "0.0000000001")
    assert msgspec.json.decode(payload, type=SpendThreshold) == event


async def test_rows_of_periods_long_over_go_and_are_summed_up_again_when_they_are_needed(
    world: World, records: RecordStore, settle: Settle, engine: AsyncEngine, books: Books
) -> None:
    team = await open_team(world, {"period": "day", "limit_usd": "3", "thresholds": [30, 60]})
    day_us = 86_400_000_000
    old_us = SystemClock().now_us() - 12 * day_us
    late = {"usage": ONE_USD, "started_at_us": old_us, "finished_at_us": old_us}
    younger_us = old_us + 3 * day_us
    younger = late | {"started_at_us": younger_us, "finished_at_us": younger_us}
    await store(records, team.record(**late), team.record(**younger), team.record(usage=ONE_USD))
    await settle.once_around(NEVER)

    async def starts() -> list[Any]:
        query = text("SELECT amount_usd FROM spend WHERE team_id = :id ORDER BY starts_at")
        async with engine.connect() as connection:
            return list((await connection.execute(query, {"id": team.team_id})).scalars())

    assert await starts() == [1, 1, 1]
    spend_books = SpendBooks(engine)
    await ForgetSpend(spend_books, 0).tick()
    await ForgetSpend(spend_books, 12).tick()
    assert await starts() == [1, 1, 1]  # it ended less than twelve days ago
    await ForgetSpend(spend_books, 10).tick()
    assert await starts() == [1, 1]
    assert len(await told(world, team)) == 3

    # The ledger says what the account's version was before the period: long before it was opened.
    await store(records, team.record(**late))
    await settle.once_around(NEVER)
    assert await starts() == [2, 1, 1]
    percents = [(e.threshold_percent, e.spent_usd) for e in await told(world, team)]
    assert percents == [(30, Decimal(1))] * 3 + [(60, Decimal(2))]
    assert await books.charges(team.team_id) == [1] * 4
