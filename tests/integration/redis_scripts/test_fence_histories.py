"""Random histories of one team's cache: the fences hold, and in the end it is right.

The one assumption: nobody takes an hour between reading the database and telling Redis, for that
is how long a fence lives. News of credits and tier changes may take any time.
"""

import asyncio
import uuid
from collections.abc import Awaitable
from typing import TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    rule,
    run_state_machine_as_test,
)
from integration.redis_scripts.clients import connect
from integration.redis_scripts.fence_world import Credit, Look, World

from quotagate.stack import Servers
from redis_scripts import RedisScripts, SettledBalance
from redis_scripts.keys import team_keys

T = TypeVar("T")

amounts = st.integers(1, 50)


class Histories(RuleBasedStateMachine):
    """Reads, news and looks are kept and delivered later, repeatedly or never."""

    url: str
    tier_reads = Bundle("tier_reads")
    tier_news = Bundle("tier_news")
    balance_reads = Bundle("balance_reads")
    credit_news = Bundle("credit_news")
    settlements = Bundle("settlements")
    looks = Bundle("looks")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.client = connect(self.url)
        self.scripts = RedisScripts(self.client)
        self.world = World(self.scripts, f"fence-{uuid.uuid4().hex}")
        self.hour = 0

    def wait(self, work: Awaitable[T]) -> T:
        return self.loop.run_until_complete(work)

    @rule()
    def an_hour_passes(self) -> None:
        """Every key expires; whoever has read the database before has given up."""
        self.hour += 1
        self.wait(self.client.delete(*team_keys(self.world.team_id)))
        self.world.an_hour_passes()

    @rule()
    def the_tier_mapping_expires(self) -> None:
        self.wait(self.client.delete(team_keys(self.world.team_id).tier))
        self.world.tier.tier_id = None

    @rule(target=tier_reads)
    def read_tier(self) -> tuple[int, int]:
        return self.hour, self.world.read_tier()

    @rule(read=tier_reads)
    def fill_tier(self, read: tuple[int, int]) -> None:
        hour, version = read
        if hour == self.hour:
            self.wait(self.world.fill_tier(version))

    @rule(target=tier_news)
    def change_tier(self) -> int:
        return self.world.change_tier()

    @rule(version=tier_news)
    def evict_tier(self, version: int) -> None:
        self.wait(self.world.evict_tier(version))

    @rule(target=balance_reads)
    def read_balance(self) -> tuple[int, SettledBalance]:
        return self.hour, self.world.read_balance()

    @rule(read=balance_reads)
    def fill_balance(self, read: tuple[int, SettledBalance]) -> None:
        hour, settled = read
        if hour == self.hour:
            self.wait(self.world.fill_balance(settled))

    @rule(target=credit_news, amount=amounts | amounts.map(lambda amount: -amount))
    def credit(self, amount: int) -> Credit:
        return self.world.credit(amount)

    @rule(credit=credit_news)
    def adjust_balance(self, credit: Credit) -> None:
        self.wait(self.world.adjust_balance(credit))

    @rule(target=settlements, amount=amounts)
    def settle(self, amount: int) -> tuple[int, SettledBalance]:
        return self.hour, self.world.commit(-amount)

    @rule(read=settlements)
    def refresh_balance(self, read: tuple[int, SettledBalance]) -> None:
        hour, settled = read
        if hour == self.hour:
            self.wait(self.world.refresh_balance(settled))

    @rule(target=looks)
    def look(self) -> tuple[int, Look]:
        return self.hour, self.world.look()

    @rule(looked=looks)
    def repair_balance(self, looked: tuple[int, Look]) -> None:
        hour, look = looked
        if hour == self.hour:
            self.wait(self.world.repair_balance(look))

    @rule(amount=amounts)
    def debit(self, amount: int) -> None:
        self.wait(self.world.debit(amount))

    def teardown(self) -> None:
        self.wait(self.world.settle_down())
        self.wait(self.scripts.drain())
        self.wait(self.client.aclose())
        self.loop.close()


def test_whatever_the_order_the_newest_wins(servers: Servers) -> None:
    machine = type("HistoriesHere", (Histories,), {"url": servers.redis_urls["tier-cache"]})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=80,
            stateful_step_count=50,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
