"""What the scripts are told and what they answer: frozen values.

Times are integer microseconds of the Redis clock, money is integer nano-USD (10⁻⁹ USD). A TAT of
None means no debt; a tier, balance or version of None means that it is not cached.
"""

from enum import StrEnum

import msgspec

from contracts.windows import WindowUse
from redis_scripts.further import ANY_DAY, DayWindow, Further, FurtherCharge, Reading
from redis_scripts.windows import WindowTerms


class DebtCaps(msgspec.Struct, frozen=True):
    """The longest debts that usage can explain.

    A TAT further ahead comes from a stepped server clock; it counts as this debt.
    """

    request_us: int
    token_us: int


class PreflightTerms(msgspec.Struct, frozen=True):
    """The tier that is assumed for the team, and its numbers.

    Who knows nothing yet assumes the tier id "": it matches no stored tier, so the answer names it.
    """

    tier_id: str
    interval_us: int
    request_burst_us: int
    token_burst_us: int
    caps: DebtCaps
    shadow: tuple[bool, bool] = (False, False)
    """Whether the request and the token limit are in shadow mode."""
    further: tuple[Further, ...] = ()
    days: DayWindow = ANY_DAY
    windows: tuple[WindowTerms, ...] = ()
    """The endpoint's; judged and entered with everything else."""


class Verdict(StrEnum):
    """What preflight answers, judged in this order. All but `ADMITTED` wrote nothing."""

    TIER_MISSING = "tier_missing"
    TIER_DIFFERS = "tier_differs"
    BALANCE_MISSING = "balance_missing"
    BALANCE_NEGATIVE = "balance_negative"
    COUNT_MISSING = "count_missing"
    LIMITED = "limited"
    ADMITTED = "admitted"


class PreflightReply(msgspec.Struct, frozen=True):
    """The verdict, and the state it left: the TATs as judged, or, when admitted, as written.

    `refusing` are the positions of the limits that refuse: 0 requests, 1 tokens, 2… the further
    ones in the order of the terms. `further` is empty where the limits were not judged.
    """

    verdict: Verdict
    now_us: int
    request_tat_us: int | None
    token_tat_us: int | None
    tier_id: str | None
    balance_nano_usd: int | None
    request_capped: bool
    token_capped: bool
    refusing: tuple[int, ...] = ()
    further: tuple[Reading, ...] = ()
    windows: tuple[WindowUse, ...] = ()
    """Each window's use; the positions of those that refuse are not among `refusing`."""


class Charge(msgspec.Struct, frozen=True):
    """What one attempt costs: the usage as time, the rough debit as money. Zeros write nothing."""

    cost_us: int
    debit_nano_usd: int
    caps: DebtCaps
    further: tuple[FurtherCharge, ...] = ()
    days: DayWindow = ANY_DAY


class PostflightReply(msgspec.Struct, frozen=True):
    """The state after the charge; without a balance nothing was debited and none was created."""

    now_us: int
    request_tat_us: int | None
    token_tat_us: int | None
    balance_nano_usd: int | None
    request_capped: bool
    token_capped: bool
    further: tuple[Reading, ...] = ()


class CappedDebts(msgspec.Struct, frozen=True):
    """The TATs after those beyond their caps were brought back."""

    now_us: int
    request_tat_us: int | None
    token_tat_us: int | None
    request_capped: bool
    token_capped: bool


class TeamState(msgspec.Struct, frozen=True):
    """All that is cached of a team, at one moment, as stored: no cap applies."""

    now_us: int
    request_tat_us: int | None
    token_tat_us: int | None
    tier_id: str | None
    tier_version: int | None
    balance_nano_usd: int | None
    balance_version: int | None
    further: tuple[int | None, ...] = ()


class TierFill(StrEnum):
    """`STALE`: the tier changed after the database was read; nothing was written."""

    FILLED = "filled"
    STALE = "stale"


class TierEviction(StrEnum):
    """`FENCED`: no mapping was there. `DUPLICATE`: as new or newer is known; nothing written."""

    EVICTED = "evicted"
    FENCED = "fenced"
    DUPLICATE = "duplicate"


class BalanceFill(StrEnum):
    """`PRESENT`: a balance is there. `STALE`: a newer version is known. Both wrote nothing."""

    FILLED = "filled"
    PRESENT = "present"
    STALE = "stale"


class BalanceAdjustment(StrEnum):
    """`EVICTED`: a version was missed, the balance is gone. `FENCED`: none was there.

    `DUPLICATE`: this version or a newer one is in already; nothing was written.
    """

    APPLIED = "applied"
    DUPLICATE = "duplicate"
    EVICTED = "evicted"
    FENCED = "fenced"


class BalanceRefresh(StrEnum):
    """`STALE`: a newer version is known. `DUPLICATE`: this very version is in. Nothing written."""

    APPLIED = "applied"
    STALE = "stale"
    DUPLICATE = "duplicate"


class BalanceRepair(StrEnum):
    """`MOVED`: the balance or its version changed since it was read; nothing was written."""

    APPLIED = "applied"
    MOVED = "moved"


class SettledBalance(msgspec.Struct, frozen=True):
    """A settled balance of the database and the account's version it belongs to."""

    balance_nano_usd: int
    version: int


class DayUsage(msgspec.Struct, frozen=True):
    """What the database says a team used from `start_us` until before `end_us`, unix µs."""

    start_us: int
    end_us: int
    requests: int
    tokens: int


class Spend(msgspec.Struct, frozen=True):
    """What was spent from `start_us` until before `end_us` (unix µs), as of an account's version.

    `key_id` None: by all keys of the team.
    """

    key_id: str | None
    start_us: int
    end_us: int
    amount_nano_usd: int
    version: int


class CountedSpend(msgspec.Struct, frozen=True):
    """What Redis counts as spent, and the version it belongs to."""

    amount_nano_usd: int
    version: int


class SpendFill(StrEnum):
    """`PRESENT`: it is counted. `STALE`: a newer version is known. Both wrote nothing."""

    FILLED = "filled"
    PRESENT = "present"
    STALE = "stale"


class SpendRefresh(StrEnum):
    """`STALE`: a newer version is known. `DUPLICATE`: this very version is in. Nothing written."""

    APPLIED = "applied"
    STALE = "stale"
    DUPLICATE = "duplicate"


class SpendRepair(StrEnum):
    """`MOVED`: the spend or its version changed since it was read; nothing was written."""

    APPLIED = "applied"
    MOVED = "moved"
