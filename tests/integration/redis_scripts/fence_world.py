"""A team in the database, its cache in Redis, and news about it that comes late, twice or never.

Every step runs the real script, compares its answer and what it left with the model, and checks
what must hold whatever the order was:

* a cached tier is the one its version had, and a cached balance is the settled balance of its
  version less the rough debits made since;
* neither is older than what the cache has been told;
* a repair never swallows a rough debit made after it looked.

Settling down (all news delivered, then one look at the database) always ends with the newest.
"""

from dataclasses import dataclass, field

from integration.redis_scripts.fence_model import CachedBalance, CachedTier
from integration.redis_scripts.terms import CAPS

from redis_scripts import (
    BalanceFill,
    BalanceRefresh,
    BalanceRepair,
    Charge,
    RedisScripts,
    SettledBalance,
    TierEviction,
    TierFill,
)


@dataclass(frozen=True)
class Credit:
    """News of a credit (or, negative, an adjustment) that the database has committed."""

    delta_nano_usd: int
    version: int


@dataclass(frozen=True)
class Look:
    """What a reconciler saw: the cached balance, then the settled one; None: nothing cached."""

    cached_nano_usd: int | None
    settled: SettledBalance
    debits_made: int


@dataclass
class World:
    """One team. Versions count from 1, the state in which it begins."""

    scripts: RedisScripts
    team_id: str
    settled_nano_usd: list[int] = field(default_factory=lambda: [100])
    tier_version: int = 1
    credits: list[Credit] = field(default_factory=list)
    tier: CachedTier = field(default_factory=CachedTier)
    balance: CachedBalance = field(default_factory=CachedBalance)
    told_tier_version: int = 0
    told_version: int = 0
    debits_since_nano_usd: int = 0
    debits_made: int = 0

    # In the database

    def read_tier(self) -> int:
        return self.tier_version

    def change_tier(self) -> int:
        self.tier_version += 1
        return self.tier_version

    def read_balance(self) -> SettledBalance:
        return SettledBalance(self.settled_nano_usd[-1], len(self.settled_nano_usd))

    def commit(self, delta_nano_usd: int) -> SettledBalance:
        self.settled_nano_usd.append(self.settled_nano_usd[-1] + delta_nano_usd)
        return self.read_balance()

    def credit(self, delta_nano_usd: int) -> Credit:
        credit = Credit(delta_nano_usd, self.commit(delta_nano_usd).version)
        self.credits.append(credit)
        return credit

    def look(self) -> Look:
        return Look(self.balance.nano_usd, self.read_balance(), self.debits_made)

    # In the cache

    async def fill_tier(self, version: int) -> TierFill:
        tier_id = f"tier_{version}"
        outcome = await self.scripts.fill_tier(self.team_id, tier_id, version)
        assert outcome == self.tier.fill(tier_id, version)
        await self.check()
        return outcome

    async def evict_tier(self, version: int) -> TierEviction:
        outcome = await self.scripts.evict_tier(self.team_id, version)
        assert outcome == self.tier.evict(version)
        self.told_tier_version = max(self.told_tier_version, version)
        await self.check()
        return outcome

    async def fill_balance(self, settled: SettledBalance) -> None:
        outcome = await self.scripts.fill_balance(self.team_id, settled)
        assert outcome == self.balance.fill(settled)
        if outcome is BalanceFill.FILLED:
            self.debits_since_nano_usd = 0
        await self.check()

    async def adjust_balance(self, credit: Credit) -> None:
        outcome = await self.scripts.adjust_balance(
            self.team_id, credit.delta_nano_usd, credit.version
        )
        assert outcome == self.balance.adjust(credit.delta_nano_usd, credit.version)
        self.told_version = max(self.told_version, credit.version)
        await self.check()

    async def refresh_balance(self, settled: SettledBalance) -> None:
        outcome = await self.scripts.refresh_balance(self.team_id, settled)
        assert outcome == self.balance.refresh(settled)
        if outcome is BalanceRefresh.APPLIED:
            self.debits_since_nano_usd = 0
        self.told_version = max(self.told_version, settled.version)
        await self.check()

    async def repair_balance(self, look: Look) -> None:
        if look.cached_nano_usd is None:
            return
        outcome = await self.scripts.repair_balance(
            self.team_id, look.cached_nano_usd, look.settled
        )
        assert outcome == self.balance.repair(look.cached_nano_usd, look.settled)
        if outcome is BalanceRepair.APPLIED:
            assert self.debits_made == look.debits_made
            self.debits_since_nano_usd = 0
        await self.check()

    async def debit(self, nano_usd: int) -> None:
        reply = await self.scripts.postflight(self.team_id, Charge(0, nano_usd, CAPS))
        self.balance.debit(nano_usd)
        assert reply.balance_nano_usd == self.balance.nano_usd
        if self.balance.nano_usd is not None:
            self.debits_since_nano_usd += nano_usd
            self.debits_made += 1
        await self.check()

    async def check(self) -> None:
        """Compare Redis with the model, and the model with what must always hold."""
        state = await self.scripts.limits_state(self.team_id)
        assert (state.tier_id, state.tier_version) == (self.tier.tier_id, self.tier.fence)
        assert state.balance_nano_usd == self.balance.nano_usd
        assert state.balance_version == self.balance.version
        if self.tier.tier_id is not None:
            assert self.tier.tier_id == f"tier_{self.tier.fence}"
            assert (self.tier.fence or 0) >= self.told_tier_version
        if self.balance.nano_usd is not None:
            assert self.balance.version is not None
            settled_nano_usd = self.settled_nano_usd[self.balance.version - 1]
            assert self.balance.nano_usd == settled_nano_usd - self.debits_since_nano_usd
            assert self.balance.version >= self.told_version

    async def settle_down(self) -> None:
        """Deliver what is left to be told, then look at the database once, as after a miss."""
        await self.evict_tier(self.tier_version)
        if self.tier.tier_id is None:
            assert await self.fill_tier(self.read_tier()) is TierFill.FILLED
        assert self.tier.tier_id == f"tier_{self.tier_version}"
        for credit in self.credits:
            await self.adjust_balance(credit)
        newest = self.read_balance()
        await self.fill_balance(newest)
        await self.refresh_balance(newest)
        await self.repair_balance(self.look())
        assert self.balance == CachedBalance(newest.balance_nano_usd, newest.version)

    def an_hour_passes(self) -> None:
        """Forget with the keys what the cache had been told; the caller deletes the keys."""
        self.tier, self.told_tier_version = CachedTier(), 0
        self.balance, self.told_version = CachedBalance(), 0
        self.debits_since_nano_usd = 0
