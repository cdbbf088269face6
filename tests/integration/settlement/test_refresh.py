"""Settled balances reach the cache, unless they would hand back what is not settled yet."""

from integration.settlement.books import Books
from integration.settlement.settling import NEVER, store
from integration.settlement.team import CallingTeam
from integration.settlement.world import World
from integration.tables.rows import new_name

from contracts.usage import Usage
from kit.money import NANO_USD_PER_USD
from redis_scripts import SettledBalance
from settlement.handlers.backlog import Backlog
from settlement.handlers.settle import Settle
from settlement.settings import Settings
from settlement.store.accounts import AccountStore
from settlement.store.balances import BalanceCache
from settlement.store.records import RecordStore


async def test_the_cached_balance_follows(
    team: CallingTeam, records: RecordStore, settle: Settle, world: World, books: Books
) -> None:
    await store(records, team.record(), team.record(usage=Usage(input=1)))
    await settle.once_around(NEVER)
    assert await world.cached(team).read() == (9_998_999_000, 2)
    assert 3_590_000 <= await world.cached(team).life_ms() <= 3_780_000


async def test_a_balance_below_a_nano_usd_is_rounded_down(
    team: CallingTeam, records: RecordStore, settle: Settle, world: World
) -> None:
    price_id = await world.desk.add_price(new_name("model"), input="0.000001")
    await store(records, team.record(price_id=price_id, usage=Usage(input=1)))
    await settle.once_around(NEVER)
    assert await world.cached(team).read() == (10 * NANO_USD_PER_USD - 1, 2)


async def test_a_late_refresh_does_not_undo_a_newer_balance(
    team: CallingTeam,
    records: RecordStore,
    settle: Settle,
    balances: BalanceCache,
    world: World,
) -> None:
    await balances.refresh(team.team_id, SettledBalance(77, 9))
    await store(records, team.record())
    await settle.once_around(NEVER)
    assert await world.cached(team).read() == (77, 9)


async def test_while_more_waits_the_rough_debits_are_not_handed_back(
    team: CallingTeam,
    records: RecordStore,
    accounts: AccountStore,
    balances: BalanceCache,
    small: Settings,
    world: World,
) -> None:
    rough = 10 * NANO_USD_PER_USD - 7 * 1_000_000
    await balances.refresh(team.team_id, SettledBalance(rough, 1))
    await store(records, *(team.record() for _ in range(7)))
    settle = Settle(records, accounts, balances, Backlog(), small)
    seen, more = [], True
    while more:
        more = await settle.once_around(NEVER)
        seen.append(await world.cached(team).read())
    # Three of seven, six of seven: not told; then all of them.
    assert seen == [(rough, 1), (rough, 1), (rough, 4)]


async def test_a_batch_that_is_just_full_is_told(
    team: CallingTeam,
    records: RecordStore,
    accounts: AccountStore,
    balances: BalanceCache,
    small: Settings,
    world: World,
) -> None:
    await store(records, *(team.record() for _ in range(small.settle_batch_records)))
    await Settle(records, accounts, balances, Backlog(), small).once_around(NEVER)
    assert await world.cached(team).read() == (9_997_000_000, 2)


async def test_while_the_stream_holds_much_more_nothing_is_refreshed(
    team: CallingTeam,
    records: RecordStore,
    accounts: AccountStore,
    balances: BalanceCache,
    settings: Settings,
    world: World,
) -> None:
    await balances.refresh(team.team_id, SettledBalance(5, 1))
    backlog = Backlog()
    backlog.unread = settings.consume_batch_records + 1
    settle = Settle(records, accounts, balances, backlog, settings)
    await store(records, team.record())
    await settle.once_around(NEVER)
    assert await world.cached(team).read() == (5, 1)
    backlog.unread = 0
    await store(records, team.record())
    await settle.once_around(NEVER)
    assert await world.cached(team).read() == (9_998_000_000, 3)
