"""Cached balances that drifted are mended without traffic, and no call in flight is wiped."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from integration.settlement.books import Books
from integration.settlement.cache import CachedTeam
from integration.settlement.team import CallingTeam, Share
from integration.settlement.world import World
from nats.aio.client import Client
from pydantic import SecretStr

from kit import redis
from quotagate.stack.ports import HOST, PortPolicy, choose
from redis_scripts import RedisScripts
from settlement.domain.classification import Pending
from settlement.domain.reconciling import AccountState
from settlement.handlers.backlog import Backlog
from settlement.handlers.metrics import DRIFT
from settlement.handlers.reconcile import Reconcile
from settlement.handlers.settle import Settle
from settlement.settings import Settings
from settlement.store.accounts import AccountStore
from settlement.store.balances import BalanceCache
from settlement.store.records import Arrival, RecordStore

TEN_USD = 10_000_000_000


@pytest.fixture
async def share(team: CallingTeam, client: Client, settings: Settings) -> Share:
    """The team's share of the stream: how far it is decides what may be mended."""
    return Share(team, client, settings)


@pytest.fixture
async def reconcile(
    share: Share, records: RecordStore, balances: BalanceCache, accounts: AccountStore
) -> Reconcile:
    await share.consume(records)
    return Reconcile(balances, accounts, share.stream)


@pytest.fixture
async def cached(team: CallingTeam, world: World) -> CachedTeam:
    """The team's balance, cached as it is settled."""
    cached = world.cached(team)
    await cached.write(TEN_USD, 1)
    return cached


async def test_a_debit_whose_record_never_came_is_given_back_at_the_second_look(
    cached: CachedTeam, reconcile: Reconcile
) -> None:
    await cached.debit(TEN_USD + 5)
    await reconcile.tick()
    assert await cached.read() == (-5, 1)
    sum_before = DRIFT._sum.get()
    await reconcile.tick()
    assert await cached.read() == (TEN_USD, 1)
    assert DRIFT._sum.get() - sum_before >= TEN_USD + 5
    assert await cached.life_ms() > 3_590_000


async def test_a_credit_that_never_came_unlocks_the_team(
    team: CallingTeam, cached: CachedTeam, reconcile: Reconcile, world: World
) -> None:
    await cached.write(-1, 1)
    await world.desk.adjust(team.team_id, "5")
    await reconcile.tick()
    await reconcile.tick()
    assert await cached.read() == (15_000_000_000, 2)


async def test_a_balance_that_moves_is_left_alone(cached: CachedTeam, reconcile: Reconcile) -> None:
    for debited in range(1, 4):
        await cached.debit(1)
        await reconcile.tick()
        assert await cached.read() == (TEN_USD - debited, 1)


async def test_a_debit_whose_record_waits_in_the_stream_is_left_alone(
    team: CallingTeam,
    share: Share,
    cached: CachedTeam,
    reconcile: Reconcile,
    records: RecordStore,
    settle: Settle,
) -> None:
    await cached.debit(1_000_000)
    await team.publish(team.record())
    for _ in range(3):
        await reconcile.tick()
        assert await cached.read() == (TEN_USD - 1_000_000, 1)
    await share.finish([await share.consume(records)])
    await settle.once_around(asyncio.Event())
    assert await cached.read() == (TEN_USD - 1_000_000, 2)


async def test_a_debit_whose_charge_is_pending_is_left_alone(
    team: CallingTeam, cached: CachedTeam, reconcile: Reconcile, records: RecordStore
) -> None:
    await cached.debit(1_000_000)
    await records.insert([Arrival(team.record(), 1, Pending())])
    for _ in range(3):
        await reconcile.tick()
        assert await cached.read() == (TEN_USD - 1_000_000, 1)


async def test_a_debit_between_reading_and_mending_is_kept(
    cached: CachedTeam,
    reconcile: Reconcile,
    accounts: AccountStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await cached.debit(7)
    await reconcile.tick()
    states = accounts.states

    async def states_and_a_call_meanwhile(
        team_ids: Sequence[str],
    ) -> dict[str, AccountState]:
        await cached.debit(1)
        return await states(team_ids)

    monkeypatch.setattr(accounts, "states", states_and_a_call_meanwhile)
    await reconcile.tick()
    balance, _ = await cached.read()
    assert balance < TEN_USD - 7


async def test_what_is_not_cached_stays_so(cached: CachedTeam, reconcile: Reconcile) -> None:
    await cached.forget()
    await reconcile.tick()
    await reconcile.tick()
    with pytest.raises(AssertionError):
        await cached.read()


async def test_a_version_the_account_never_had_is_told_and_not_touched(
    cached: CachedTeam, reconcile: Reconcile, capsys: pytest.CaptureFixture[str]
) -> None:
    await cached.write(3, 99)
    await reconcile.tick()
    await reconcile.tick()
    assert await cached.read() == (3, 99)
    assert "a version the account never had" in capsys.readouterr().out


@pytest.fixture
async def deaf(settings: Settings) -> AsyncIterator[BalanceCache]:
    """The cache at an address where nobody listens."""
    (port,) = choose(["nobody"], PortPolicy.FREE, {}, {}).values()
    address = SecretStr(f"redis://{HOST}:{port}/0")
    client = redis.connect(settings.model_copy(update={"redis_url": address}))
    scripts = RedisScripts(client)
    yield BalanceCache(client, scripts)
    await scripts.drain()
    await client.aclose()


async def test_a_settlement_stands_while_redis_is_away_and_is_told_later(
    team: CallingTeam,
    cached: CachedTeam,
    reconcile: Reconcile,
    records: RecordStore,
    accounts: AccountStore,
    deaf: BalanceCache,
    settings: Settings,
    books: Books,
) -> None:
    await records.insert([Arrival(team.record(), 1, Pending())])
    settle = Settle(records, accounts, deaf, Backlog(), settings)
    await settle.once_around(asyncio.Event())
    assert list((await books.states(team.team_id)).values()) == ["SETTLED"]
    assert await cached.read() == (TEN_USD, 1)
    await reconcile.tick()
    await reconcile.tick()
    assert await cached.read() == (TEN_USD - 1_000_000, 2)
