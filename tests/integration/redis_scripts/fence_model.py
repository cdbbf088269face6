"""The version fences as plain Python: what each script must answer and leave behind."""

from dataclasses import dataclass

from redis_scripts import (
    BalanceAdjustment,
    BalanceFill,
    BalanceRefresh,
    BalanceRepair,
    SettledBalance,
    TierEviction,
    TierFill,
)


@dataclass
class CachedTier:
    """A team's tier mapping and its fence."""

    tier_id: str | None = None
    fence: int | None = None

    def fill(self, tier_id: str, version: int) -> TierFill:
        if self.fence is not None and self.fence > version:
            return TierFill.STALE
        self.tier_id, self.fence = tier_id, version
        return TierFill.FILLED

    def evict(self, version: int) -> TierEviction:
        if self.fence is not None and self.fence >= version:
            return TierEviction.DUPLICATE
        known = self.tier_id is not None
        self.tier_id, self.fence = None, version
        return TierEviction.EVICTED if known else TierEviction.FENCED


@dataclass
class CachedBalance:
    """A team's balance and its version; a version without a balance is a fence."""

    nano_usd: int | None = None
    version: int | None = None

    def fill(self, settled: SettledBalance) -> BalanceFill:
        if self.nano_usd is not None:
            return BalanceFill.PRESENT
        if self.version is not None and self.version > settled.version:
            return BalanceFill.STALE
        self._become(settled)
        return BalanceFill.FILLED

    def adjust(self, delta_nano_usd: int, version: int) -> BalanceAdjustment:
        if self.version is not None and self.version >= version:
            return BalanceAdjustment.DUPLICATE
        before, self.version, known = self.nano_usd, version, self.version
        if before is None:
            return BalanceAdjustment.FENCED
        if known != version - 1:
            self.nano_usd = None
            return BalanceAdjustment.EVICTED
        self.nano_usd = before + delta_nano_usd
        return BalanceAdjustment.APPLIED

    def refresh(self, settled: SettledBalance) -> BalanceRefresh:
        if self.version is not None and self.version > settled.version:
            return BalanceRefresh.STALE
        if self.nano_usd is not None and self.version == settled.version:
            return BalanceRefresh.DUPLICATE
        self._become(settled)
        return BalanceRefresh.APPLIED

    def repair(self, expected_nano_usd: int, settled: SettledBalance) -> BalanceRepair:
        if (self.nano_usd, self.version) != (expected_nano_usd, settled.version):
            return BalanceRepair.MOVED
        self._become(settled)
        return BalanceRepair.APPLIED

    def debit(self, nano_usd: int) -> None:
        if self.nano_usd is not None:
            self.nano_usd -= nano_usd

    def _become(self, settled: SettledBalance) -> None:
        self.nano_usd, self.version = settled.balance_nano_usd, settled.version
