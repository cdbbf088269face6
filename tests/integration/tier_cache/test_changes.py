"""Change events reach Redis: published as the control plane publishes, consumed from the stream."""

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest
from integration.bus import TIMEOUT_S, Bus, nats_settings
from integration.tables.rows import new_name
from nats.aio.client import Client
from nats.aio.msg import Msg
from redis.asyncio import Redis

from contracts.contract import decode
from contracts.control import (
    ACCOUNT_ADJUSTED,
    CONTROL_EVENTS,
    TIER_CHANGED,
    AccountAdjusted,
    TierChanged,
)
from contracts.dead import DEAD_LETTERED, DEAD_LETTERS, DeadLetter
from kit.background import running
from kit.bus.connection import connection
from kit.bus.consuming import Puller
from kit.bus.publishing import Publisher
from kit.clock import SystemClock
from kit.redis import RedisClient
from quotagate.stack import Servers
from redis_scripts import OutcomeUnknownError, RedisScripts, SettledBalance, TierEviction
from redis_scripts.keys import team_keys
from tier_cache.handlers.changes import DURABLE, Changes


class WatchedPuller(Puller):
    """A puller that tells when an event of the stream was acknowledged."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, DURABLE)
        self._acknowledged: dict[int, asyncio.Event] = {}

    def _event(self, sequence: int) -> asyncio.Event:
        return self._acknowledged.setdefault(sequence, asyncio.Event())

    async def ack(self, message: Msg, timeout_s: float = TIMEOUT_S) -> None:
        await super().ack(message, timeout_s)
        self._event(message.metadata.sequence.stream).set()

    async def done_with(self, sequence: int) -> None:
        """Return when this event was acknowledged."""
        async with asyncio.timeout(TIMEOUT_S):
            await self._event(sequence).wait()


class FailingScripts(RedisScripts):
    """Redis, but the first evictions get no answer."""

    failures = 0

    async def evict_tier(self, team_id: str, version: int) -> TierEviction:
        if self.failures:
            self.failures -= 1
            raise OutcomeUnknownError
        return await super().evict_tier(team_id, version)


@pytest.fixture(scope="module")
async def tier_cache(servers: Servers) -> AsyncIterator[Client]:
    async with connection(nats_settings(servers, "tier-cache"), "tier-cache") as client:
        yield client


@pytest.fixture(scope="module")
async def puller(tier_cache: Client) -> AsyncIterator[WatchedPuller]:
    puller = WatchedPuller(tier_cache)
    await puller.open()
    yield puller
    await puller.close()


@pytest.fixture(scope="module")
async def scripts(redis_client: RedisClient) -> AsyncIterator[FailingScripts]:
    scripts = FailingScripts(redis_client)
    yield scripts
    await scripts.drain()


@pytest.fixture(scope="module", autouse=True)
async def changes(
    tier_cache: Client, puller: WatchedPuller, scripts: FailingScripts
) -> AsyncIterator[None]:
    changes = Changes(puller, Publisher(tier_cache), scripts, SystemClock())
    async with running(changes.run, "changes", grace_s=TIMEOUT_S):
        yield


async def _announce_tier(control_plane: Bus, team_id: str, version: int) -> int:
    message = TierChanged(team_id=team_id, tier_id="new", version=version, changed_at_us=1)
    return await control_plane.announce(TIER_CHANGED, team_id, message)


async def _announce_credit(
    control_plane: Bus, team_id: str, amount_usd: str, balance_usd: str, version: int
) -> int:
    message = AccountAdjusted(
        team_id=team_id,
        entry_id="1",
        amount_usd=Decimal(amount_usd),
        balance_usd=Decimal(balance_usd),
        version=version,
        changed_at_us=1,
    )
    return await control_plane.announce(ACCOUNT_ADJUSTED, team_id, message)


async def _balance(operator: Redis, team_id: str) -> tuple[Any, Any]:
    keys = team_keys(team_id)
    balance, version = await operator.mget(keys.balance, keys.balance_version)
    return balance, version


async def test_a_changed_tier_is_evicted(
    control_plane: Bus, puller: WatchedPuller, scripts: FailingScripts, operator: Redis
) -> None:
    team_id = new_name("team")
    await scripts.fill_tier(team_id, "old", 1)
    await puller.done_with(await _announce_tier(control_plane, team_id, 2))
    keys = team_keys(team_id)
    assert await operator.mget(keys.tier, keys.tier_version) == [None, b"2"]


async def test_an_older_change_leaves_a_newer_mapping(
    control_plane: Bus, puller: WatchedPuller, scripts: FailingScripts, operator: Redis
) -> None:
    team_id = new_name("team")
    await scripts.fill_tier(team_id, "newest", 3)
    await puller.done_with(await _announce_tier(control_plane, team_id, 2))
    keys = team_keys(team_id)
    assert await operator.mget(keys.tier, keys.tier_version) == [b"newest", b"3"]


@pytest.mark.parametrize(
    ("cached", "amount_usd", "balance_usd", "moved"),
    [
        pytest.param(-1_000_000_000, "10", "9", b"9000000000", id="a credit"),
        pytest.param(5_000_000_000, "-2", "3", b"3000000000", id="a debit by hand"),
        pytest.param(400_000_000, "10", "11", b"10400000000", id="rough debits stay"),
        pytest.param(-1, "0.0000000001", "0", b"0", id="a tenth of a nano over the zero line"),
        pytest.param(0, "0.0000000001", "0.0000000001", b"0", id="a tenth of a nano above it"),
    ],
)
async def test_an_adjustment_moves_the_cached_balance(
    control_plane: Bus,
    puller: WatchedPuller,
    scripts: FailingScripts,
    operator: Redis,
    cached: int,
    amount_usd: str,
    balance_usd: str,
    moved: bytes,
) -> None:
    team_id = new_name("team")
    await scripts.fill_balance(team_id, SettledBalance(cached, 1))
    sequence = await _announce_credit(control_plane, team_id, amount_usd, balance_usd, 2)
    await puller.done_with(sequence)
    assert await _balance(operator, team_id) == (moved, b"2")


async def test_an_adjustment_twice_counts_once(
    control_plane: Bus, puller: WatchedPuller, scripts: FailingScripts, operator: Redis
) -> None:
    team_id = new_name("team")
    await scripts.fill_balance(team_id, SettledBalance(0, 1))
    for _ in range(2):
        await puller.done_with(await _announce_credit(control_plane, team_id, "1", "1", 2))
    assert await _balance(operator, team_id) == (b"1000000000", b"2")


async def test_a_missed_adjustment_evicts_the_balance(
    control_plane: Bus, puller: WatchedPuller, scripts: FailingScripts, operator: Redis
) -> None:
    team_id = new_name("team")
    await scripts.fill_balance(team_id, SettledBalance(0, 1))
    await puller.done_with(await _announce_credit(control_plane, team_id, "1", "2", 3))
    assert await _balance(operator, team_id) == (None, b"3")


async def test_a_teams_events_keep_their_order(
    control_plane: Bus, puller: WatchedPuller, scripts: FailingScripts, operator: Redis
) -> None:
    team_id = new_name("team")
    await scripts.fill_balance(team_id, SettledBalance(0, 1))
    last = 0
    for version in range(2, 40):
        last = await _announce_credit(control_plane, team_id, "1", str(version - 1), version)
    await puller.done_with(last)
    assert await _balance(operator, team_id) == (b"38000000000", b"39")


async def test_an_event_that_redis_did_not_answer_comes_again(
    control_plane: Bus, puller: WatchedPuller, scripts: FailingScripts, operator: Redis
) -> None:
    team_id = new_name("team")
    await scripts.fill_tier(team_id, "old", 1)
    scripts.failures = 2
    sequence = await _announce_tier(control_plane, team_id, 2)
    await puller.done_with(sequence)
    assert scripts.failures == 0
    assert await operator.get(team_keys(team_id).tier) is None


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        pytest.param(TIER_CHANGED, b"{", id="broken JSON"),
        pytest.param(TIER_CHANGED, b'{"team_id": "a{b}"}', id="not the message"),
        pytest.param(
            TIER_CHANGED,
            b'{"team_id":"t","tier_id":"x","version":-1,"changed_at_us":1}',
            id="a version below zero",
        ),
        pytest.param(
            ACCOUNT_ADJUSTED,
            b'{"team_id":"t","entry_id":"1","amount_usd":"NaN","balance_usd":"1","version":2,'
            b'"changed_at_us":1}',
            id="not a number of dollars",
        ),
        pytest.param(
            ACCOUNT_ADJUSTED,
            b'{"team_id":"t","entry_id":"1","amount_usd":"1e30","balance_usd":"1e30","version":2,'
            b'"changed_at_us":1}',
            id="more dollars than Redis can hold",
        ),
    ],
)
async def test_what_can_not_be_read_becomes_a_dead_letter_and_blocks_nobody(
    servers: Servers,
    tier_cache: Client,
    control_plane: Bus,
    puller: WatchedPuller,
    event: Any,
    payload: bytes,
) -> None:
    async with connection(nats_settings(servers, "control-plane"), "control-plane") as client:
        subject = event.subject_for(new_name("team"))
        sequence = (await client.jetstream().publish(subject, payload)).seq
    await puller.done_with(sequence)
    await puller.done_with(await _announce_tier(control_plane, new_name("team"), 2))
    async with connection(nats_settings(servers, "operator"), "operator") as client:
        found = await client.jetstream().get_last_msg(
            DEAD_LETTERS.name, DEAD_LETTERED.subject_for("tier-cache")
        )
    letter = decode(found.data or b"", DeadLetter)
    assert (letter.stream, letter.stream_sequence) == (CONTROL_EVENTS.name, sequence)
    assert (letter.subject, b64decode(letter.payload_base64)) == (subject, payload)
    assert letter.reason


async def test_a_consumer_that_was_deleted_is_made_again(
    servers: Servers, control_plane: Bus, puller: WatchedPuller
) -> None:
    async with connection(nats_settings(servers, "operator"), "operator") as client:
        await client.jetstream().delete_consumer(CONTROL_EVENTS.name, DURABLE.name)
    await puller.done_with(await _announce_tier(control_plane, new_name("team"), 2))
