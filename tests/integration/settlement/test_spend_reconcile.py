"""Counted spend that drifted is mended without traffic, and no call in flight is wiped."""

import pytest
from integration.settlement.settling import NEVER, store
from integration.settlement.team import CallingTeam, Share
from integration.settlement.test_spend import DAY_OF_10, ONE_USD, counted, open_team, today, told
from integration.settlement.world import World
from nats.aio.client import Client
from sqlalchemy.ext.asyncio import AsyncEngine

from kit.clock import SystemClock
from redis_scripts.keys import spend_counter, version_of
from settlement.handlers.reconcile import Reconcile
from settlement.handlers.reconcile_spend import ReconcileSpend
from settlement.handlers.settle import Settle
from settlement.settings import Settings
from settlement.store.accounts import AccountStore
from settlement.store.balances import BalanceCache
from settlement.store.records import RecordStore
from settlement.store.spend_books import SpendBooks

pytestmark = pytest.mark.usefixtures("far_from_midnight")

KEY_OF_5 = {"period": "day", "scope": "key", "limit_usd": "5"}


@pytest.fixture
async def team(world: World) -> CallingTeam:
    return await open_team(world, DAY_OF_10, KEY_OF_5)


@pytest.fixture
async def share(team: CallingTeam, client: Client, settings: Settings) -> Share:
    return Share(team, client, settings)


@pytest.fixture
async def reconcile(
    share: Share,
    records: RecordStore,
    balances: BalanceCache,
    accounts: AccountStore,
    engine: AsyncEngine,
) -> Reconcile:
    await share.consume(records)
    spend = ReconcileSpend(balances, SpendBooks(engine), share.stream, SystemClock())
    return Reconcile(balances, accounts, share.stream, spend)


async def debit(world: World, team: CallingTeam, nano_usd: int, key: str | None = None) -> None:
    """A rough debit, of the balance and of what is counted as spent."""
    await world.cached(team).debit(nano_usd)
    await world.redis.incrby(spend_counter(*today(), key).of(team.team_id), nano_usd)


async def test_spend_whose_record_never_came_is_given_back_at_the_second_look(
    world: World, team: CallingTeam, records: RecordStore, settle: Settle, reconcile: Reconcile
) -> None:
    key = await world.desk.add_key(team.team_id)
    await store(records, team.record(api_key_id=key, usage=ONE_USD))
    await settle.once_around(NEVER)
    await debit(world, team, 7)
    await debit(world, team, 9, key)
    await reconcile.tick()
    assert await counted(world, team, today(), None) == (1_000_000_007, 2)
    await reconcile.tick()
    assert await counted(world, team, today(), None) == (1_000_000_000, 2)
    assert await counted(world, team, today(), key) == (1_000_000_000, 2)


async def test_a_credit_between_is_no_drift_and_the_newer_version_is_noted(
    world: World, team: CallingTeam, records: RecordStore, settle: Settle, reconcile: Reconcile
) -> None:
    await store(records, team.record(usage=ONE_USD))
    await settle.once_around(NEVER)
    await world.desk.adjust(team.team_id, "5")
    for _ in range(2):
        await reconcile.tick()
    assert await counted(world, team, today(), None) == (1_000_000_000, 2)
    await debit(world, team, 7)
    for _ in range(2):
        await reconcile.tick()
    assert await counted(world, team, today(), None) == (1_000_000_000, 3)


async def test_spend_that_moves_is_left_alone(
    world: World, team: CallingTeam, records: RecordStore, settle: Settle, reconcile: Reconcile
) -> None:
    await store(records, team.record(usage=ONE_USD))
    await settle.once_around(NEVER)
    for debited in range(1, 4):
        await debit(world, team, 1)
        await reconcile.tick()
        assert await counted(world, team, today(), None) == (1_000_000_000 + debited, 2)


async def test_spend_whose_record_waits_in_the_stream_or_for_its_charge_is_left_alone(
    world: World,
    team: CallingTeam,
    share: Share,
    records: RecordStore,
    settle: Settle,
    reconcile: Reconcile,
) -> None:
    await store(records, team.record(usage=ONE_USD))
    await settle.once_around(NEVER)
    await debit(world, team, 1_000_000)
    await team.publish(team.record())
    for _ in range(3):
        await reconcile.tick()
        assert await counted(world, team, today(), None) == (1_001_000_000, 2)
    await share.finish([await share.consume(records)])
    for _ in range(3):
        await reconcile.tick()
        assert await counted(world, team, today(), None) == (1_001_000_000, 2)
    await settle.once_around(NEVER)
    assert await counted(world, team, today(), None) == (1_001_000_000, 3)


async def test_a_version_that_the_account_never_had_is_told_and_not_touched(
    world: World, team: CallingTeam, records: RecordStore, settle: Settle, reconcile: Reconcile
) -> None:
    await store(records, team.record(usage=ONE_USD))
    await settle.once_around(NEVER)
    place = spend_counter(*today(), None)
    await world.redis.set(version_of(place).of(team.team_id), 99, keepttl=True)
    for _ in range(3):
        await reconcile.tick()
    assert await counted(world, team, today(), None) == (1_000_000_000, 99)


async def test_a_long_history_is_summed_up_without_traffic(
    world: World,
    records: RecordStore,
    settle: Settle,
    reconcile: Reconcile,
    engine: AsyncEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("settlement.store.spending._MOST_ENTRIES", 2)
    team = await open_team(world)
    await world.desk.add_key(team.team_id)
    for _ in range(5):
        await store(records, team.record(usage=ONE_USD))
        await settle.once_around(NEVER)
    await world.desk.move_team(team.team_id, await world.desk.open_tier(spend_limits=[DAY_OF_10]))
    for _ in range(3):
        await reconcile.tick()
    books = SpendBooks(engine)
    [(limits, keys)] = (await books.limited([team.team_id])).values()
    from settlement.domain.spending import current_periods

    current = current_periods(team.team_id, limits, keys, SystemClock().now_us())
    (settled,) = (await books.look(current)).settled.values()
    assert (settled.amount_nano_usd, settled.version) == (5_000_000_000, 6)


async def test_a_limit_that_became_lower_tells_what_is_reached_without_a_charge_and_once(
    world: World,
    team: CallingTeam,
    records: RecordStore,
    settle: Settle,
    share: Share,
    balances: BalanceCache,
    accounts: AccountStore,
    engine: AsyncEngine,
) -> None:
    key = await world.desk.add_key(team.team_id)
    await share.consume(records)

    def replica() -> Reconcile:
        spend = ReconcileSpend(balances, SpendBooks(engine), share.stream, SystemClock())
        return Reconcile(balances, accounts, share.stream, spend)

    reconcile = replica()
    await store(records, team.record(api_key_id=key, usage=ONE_USD))
    await settle.once_around(NEVER)
    await world.cached(team).debit(0)
    for _ in range(2):
        await reconcile.tick()
    assert await told(world, team) == []

    lower = [DAY_OF_10 | {"limit_usd": "1.25"}, KEY_OF_5 | {"limit_usd": "2"}]
    await world.desk.move_team(team.team_id, await world.desk.open_tier(spend_limits=lower))
    for _ in range(2):
        await reconcile.tick()
    await replica().tick()
    events = await told(world, team)
    assert sorted((event.key_id or "", event.threshold_percent) for event in events) == [
        ("", 50),
        ("", 80),
        (key, 50),
    ]
    assert {event.spent_usd for event in events} == {1}
    # The next charge tells what it crosses, and nothing of that again.
    await store(records, team.record(api_key_id=key, usage=ONE_USD))
    await settle.once_around(NEVER)
    assert sorted(
        (event.key_id or "", event.threshold_percent) for event in await told(world, team)
    ) == [
        *(("", percent) for percent in (50, 80, 95, 100)),
        *((key, percent) for percent in (50, 80, 95, 100)),
    ]
