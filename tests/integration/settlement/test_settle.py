"""Pending records become charges: exactly, once, and for everyone."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal

import pytest
from integration.settlement.books import Books
from integration.settlement.settling import NEVER, settle_all, store
from integration.settlement.team import CallingTeam
from integration.settlement.world import World
from integration.tables.rows import new_name
from sqlalchemy.ext.asyncio import AsyncEngine

from contracts.usage import Usage
from settlement.handlers.backlog import Backlog
from settlement.handlers.settle import Settle
from settlement.settings import Settings
from settlement.store.accounts import AccountStore, Charging
from settlement.store.balances import BalanceCache
from settlement.store.prices import PriceBook
from settlement.store.records import RecordStore


async def test_two_workers_charge_one_account_once(
    team: CallingTeam,
    records: RecordStore,
    accounts: AccountStore,
    balances: BalanceCache,
    small: Settings,
    books: Books,
) -> None:
    await store(records, *(team.record(usage=Usage(input=n)) for n in range(1, 101)))
    workers = [Settle(records, accounts, balances, Backlog(), small) for _ in range(2)]
    await settle_all(*workers)
    assert await books.charges(team.team_id) == [Decimal(n) / 10**6 for n in range(1, 101)]
    assert await books.balance_usd(team.team_id) == Decimal(10) - Decimal("0.00505")
    await books.assert_they_add_up(team.team_id)


async def test_the_pinned_price_is_charged_whatever_came_into_effect_since(
    team: CallingTeam, records: RecordStore, settle: Settle, world: World, books: Books
) -> None:
    model = new_name("model")
    v1 = await world.desk.add_price(model, input="1")
    v2 = await world.desk.add_price(model, "now() + interval '1 microsecond'", input="7")
    await store(records, team.record(price_id=v1), team.record(price_id=v2))
    await settle.once_around(NEVER)
    assert await books.charges(team.team_id) == [Decimal("0.001"), Decimal("0.007")]


async def test_a_charge_is_exact_far_below_a_nano_usd(
    team: CallingTeam, records: RecordStore, settle: Settle, world: World, books: Books
) -> None:
    price_id = await world.desk.add_price(new_name("model"), input="0.000000000000000000000000001")
    await store(records, team.record(price_id=price_id, usage=Usage(input=3)))
    await settle.once_around(NEVER)
    assert await books.charges(team.team_id) == [Decimal("3E-33")]
    # Written out, because Decimal's own operators round to 28 digits.
    assert await books.balance_usd(team.team_id) == Decimal("9.999999999999999999999999999999997")
    await books.assert_they_add_up(team.team_id)


async def test_what_costs_nothing_is_settled_without_an_entry(
    team: CallingTeam, records: RecordStore, settle: Settle, world: World, books: Books
) -> None:
    free = await world.desk.add_price(
        new_name("model"),
        **dict.fromkeys(
            ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning"), "0"
        ),
    )
    await store(records, team.record(price_id=free), team.record(usage=Usage()))
    await settle.once_around(NEVER)
    assert set((await books.states(team.team_id)).values()) == {"SETTLED"}
    assert await books.charges(team.team_id) == [0, 0]
    assert len(await books.ledger(team.team_id)) == 1
    await books.assert_they_add_up(team.team_id)


async def test_a_deleted_team_still_pays(
    team: CallingTeam, records: RecordStore, settle: Settle, world: World, books: Books
) -> None:
    await world.desk.delete_team(team.team_id)
    await store(records, team.record())
    await settle.once_around(NEVER)
    assert await books.charges(team.team_id) == [Decimal("0.001")]


@pytest.fixture
async def broken(world: World, books: Books) -> AsyncIterator[CallingTeam]:
    """A team whose account the database won't let anybody debit."""
    team = await world.open_team()
    await books.execute(
        "ALTER TABLE account ADD CONSTRAINT broken_for_a_test"
        f" CHECK (team_id <> '{team.team_id}' OR version = 1) NOT VALID"
    )
    yield team
    await books.execute("ALTER TABLE account DROP CONSTRAINT broken_for_a_test")


async def test_a_broken_account_stops_no_other(
    broken: CallingTeam,
    world: World,
    records: RecordStore,
    settle: Settle,
    books: Books,
) -> None:
    others = [await world.open_team() for _ in range(5)]
    for team in [broken, *others]:
        await store(records, team.record())
    await settle_all(settle)
    for team in others:
        assert await books.charges(team.team_id) == [Decimal("0.001")]
    assert list((await books.states(broken.team_id)).values()) == ["PENDING"]
    await books.assert_they_add_up(broken.team_id)


class _BuggyAccounts(AccountStore):
    """The real store, with a bug that one team meets."""

    def __init__(self, engine: AsyncEngine, team_id: str) -> None:
        super().__init__(engine, PriceBook())
        self._team_id = team_id

    @asynccontextmanager
    async def charging(self) -> AsyncIterator[Charging]:
        async with super().charging() as charging:
            lock = charging.lock

            async def lock_or_fail(team_ids: Sequence[str]) -> list[str]:
                assert self._team_id not in team_ids
                return await lock(team_ids)

            charging.lock = lock_or_fail  # type: ignore[method-assign] # of this one transaction
            yield charging


async def test_a_bug_that_one_team_meets_stops_no_other(
    world: World,
    records: RecordStore,
    balances: BalanceCache,
    engine: AsyncEngine,
    settings: Settings,
    books: Books,
) -> None:
    teams = [await world.open_team() for _ in range(5)]
    for team in teams:
        await store(records, team.record())
    unlucky = teams[2]
    accounts = _BuggyAccounts(engine, unlucky.team_id)
    await settle_all(Settle(records, accounts, balances, Backlog(), settings))
    assert list((await books.states(unlucky.team_id)).values()) == ["PENDING"]
    for team in teams:
        if team is not unlucky:
            assert await books.charges(team.team_id) == [Decimal("0.001")]


async def test_many_teams_with_many_records_are_all_settled(
    world: World,
    records: RecordStore,
    accounts: AccountStore,
    balances: BalanceCache,
    small: Settings,
    books: Books,
) -> None:
    teams: Sequence[CallingTeam] = [await world.open_team() for _ in range(7)]
    for team in teams:
        await store(records, *(team.record() for _ in range(5)))
    await settle_all(*(Settle(records, accounts, balances, Backlog(), small) for _ in range(3)))
    for team in teams:
        assert len(await books.charges(team.team_id)) == 5
        await books.assert_they_add_up(team.team_id)
