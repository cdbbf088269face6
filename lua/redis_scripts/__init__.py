"""Quotagate's Redis scripts: one typed method each, and the names and lives of their keys."""

from redis_scripts.errors import (
    InvalidTeamIdError,
    NotDoneError,
    OutcomeUnknownError,
    OutOfRangeError,
    RedisScriptsError,
)
from redis_scripts.scripts import RedisScripts
from redis_scripts.values import (
    BalanceAdjustment,
    BalanceFill,
    BalanceRefresh,
    BalanceRepair,
    CappedDebts,
    Charge,
    DebtCaps,
    PostflightReply,
    PreflightReply,
    PreflightTerms,
    SettledBalance,
    TeamState,
    TierEviction,
    TierFill,
    Verdict,
)

__all__ = [
    "BalanceAdjustment",
    "BalanceFill",
    "BalanceRefresh",
    "BalanceRepair",
    "CappedDebts",
    "Charge",
    "DebtCaps",
    "InvalidTeamIdError",
    "NotDoneError",
    "OutOfRangeError",
    "OutcomeUnknownError",
    "PostflightReply",
    "PreflightReply",
    "PreflightTerms",
    "RedisScripts",
    "RedisScriptsError",
    "SettledBalance",
    "TeamState",
    "TierEviction",
    "TierFill",
    "Verdict",
]
