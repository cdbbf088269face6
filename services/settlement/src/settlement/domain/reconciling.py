"""Whether a cached balance has drifted from the settled one, and what to do about it.

A rough debit whose record never came, or a credit whose cache update was lost, would lock a team
out that then sends nothing and so causes no settlement. The danger of repairing is the opposite: a
rough debit of a call that is still in flight must not be wiped. So a balance is repaired only when
it hasn't moved since the last look, and all that had been published by then is settled.
"""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class CachedBalance:
    """A team's balance and its version as Redis holds them. Version None: there is none."""

    team_id: str
    balance_nano_usd: int
    version: int | None


@dataclass(frozen=True, slots=True)
class CountedSpend:
    """What Redis counts as spent in a period, and the account's version it belongs to."""

    amount_nano_usd: int
    version: int


@dataclass(frozen=True, slots=True)
class AccountState:
    """A team's settled balance, read from the database after the cached one was read."""

    balance_nano_usd: int
    version: int
    has_pending: bool


class Step(StrEnum):
    """What reconciling does about a team."""

    NOTHING = "nothing"
    """The two agree, or somebody is at work on it."""
    LOOK_AGAIN = "look_again"
    """They differ, but the difference may belong to a call in flight."""
    REFRESH = "refresh"
    """The cache missed a version of the account."""
    REPAIR = "repair"
    """Of the same version, and yet different."""
    AHEAD = "ahead"
    """The cache has a version that the account never had: the database was restored."""


def next_step(
    cached: CachedBalance, account: AccountState, seen_before: CachedBalance | None
) -> Step:
    """Decide about one team.

    `seen_before` is what an earlier look found in the cache, all of whose published records are
    settled by now; None: there was no such look.
    """
    if cached.version is not None and cached.version > account.version:
        return Step.AHEAD
    if account.has_pending:
        return Step.NOTHING
    if (cached.balance_nano_usd, cached.version) == (account.balance_nano_usd, account.version):
        return Step.NOTHING
    if cached != seen_before:
        return Step.LOOK_AGAIN
    return Step.REPAIR if cached.version == account.version else Step.REFRESH


@dataclass(frozen=True, slots=True)
class SettledSpend:
    """What was settled of a period, read from the database after the counted spend was read."""

    amount_nano_usd: int
    version: int
    has_pending: bool


def next_spend_step(
    counted: CountedSpend, settled: SettledSpend, seen_before: CountedSpend | None
) -> Step:
    """Decide about the spend of one period, as `next_step` does about a balance.

    Versions may differ where the amounts don't: a credit raises one and spends nothing.
    """
    if counted.version > settled.version:
        return Step.AHEAD
    if settled.has_pending or counted.amount_nano_usd == settled.amount_nano_usd:
        return Step.NOTHING
    return Step.REPAIR if counted == seen_before else Step.LOOK_AGAIN
