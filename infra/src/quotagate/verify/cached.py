"""The cache's part of the proof: with nothing pending, a cached balance is the settled one.

A rough debit comes a moment before its record, and a refresh a moment after its commit, so a
difference is only wrong when it stays. It may stay for as long as the reconciler is promised to
repair it in; whatever moves meanwhile is being worked on, and isn't judged.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from kit.money import floor_nano_usd
from kit.redis import RedisClient
from quotagate.cached_teams import cached_teams, for_each
from quotagate.statements import statement
from quotagate.verify.books import SQL
from quotagate.verify.findings import Finding, Kind, Report
from redis_scripts.keys import BALANCE_PATTERN, TeamKeys, team_of_balance_key

_ACCOUNTS = statement(SQL, "account_states")
_CHUNK_TEAMS = 500
_LOOK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Cached:
    """A balance as Redis holds it. Version None: there is none."""

    balance_nano_usd: int
    version: int | None


@dataclass(frozen=True, slots=True)
class Settled:
    """A balance as the database holds it, read after the cached one; rounded down to nano-USD."""

    balance_nano_usd: int
    version: int
    has_pending: bool


class Verdict(Enum):
    """What one look at a team tells."""

    FINE = "fine"
    """The two agree, or records wait for their charge."""
    DIFFERENT = "different"
    AHEAD = "ahead"
    NO_ACCOUNT = "no account"


def judge(cached: Cached, settled: Settled | None) -> Verdict:
    """Compare what one look found."""
    if settled is None:
        return Verdict.NO_ACCOUNT
    if cached.version is not None and cached.version > settled.version:
        return Verdict.AHEAD
    if settled.has_pending or cached.balance_nano_usd == settled.balance_nano_usd:
        return Verdict.FINE
    return Verdict.DIFFERENT


@dataclass(frozen=True, slots=True)
class _Look:
    cached: Cached
    settled: Settled | None

    @property
    def verdict(self) -> Verdict:
        return judge(self.cached, self.settled)


async def check_cache(
    client: RedisClient, engine: AsyncEngine, wait_s: float, report: Report
) -> list[Finding]:
    """Compare every cached balance with the settled one; return what differed all the time.

    Looks again at what differs for `wait_s`. The caller decides what the differences mean that may
    come from records on their way; the rest is in the report already.
    """
    different: dict[str, _Look] = {}
    compared = 0
    async for team_ids in cached_teams(client, BALANCE_PATTERN, team_of_balance_key):
        looks = await _look(client, engine, team_ids)
        compared += len(looks)
        different |= {t: look for t, look in looks.items() if look.verdict is not Verdict.FINE}
    report.figures["cached_balances"] = compared
    different = await _those_that_stay(client, engine, different, wait_s)
    doubtful = []
    for team_id, look in different.items():
        finding = _finding(team_id, look)
        if finding.kind is Kind.CACHED_BALANCE:
            doubtful.append(finding)
        else:
            report.add(finding)
    return doubtful


async def _those_that_stay(
    client: RedisClient, engine: AsyncEngine, different: dict[str, _Look], wait_s: float
) -> dict[str, _Look]:
    """Look again until the time is over; keep those that never moved."""
    deadline_s = asyncio.get_running_loop().time() + wait_s
    while different and asyncio.get_running_loop().time() < deadline_s:
        await asyncio.sleep(min(_LOOK_EVERY_S, wait_s))
        teams = sorted(different)
        for start in range(0, len(teams), _CHUNK_TEAMS):
            chunk = teams[start : start + _CHUNK_TEAMS]
            again = await _look(client, engine, chunk)
            for team_id in chunk:
                if again.get(team_id) != different[team_id]:
                    del different[team_id]
    return different


async def _look(
    client: RedisClient, engine: AsyncEngine, team_ids: Sequence[str]
) -> dict[str, _Look]:
    """Read the cached balances, and after them the settled ones. Extends no life."""
    cached = await _read_cached(client, team_ids)
    async with engine.connect() as connection:
        settled = await _read_settled(connection, team_ids)
    return {team_id: _Look(found, settled.get(team_id)) for team_id, found in cached.items()}


def _balance(keys: TeamKeys) -> tuple[str, str]:
    return keys.balance, keys.balance_version


async def _read_cached(client: RedisClient, team_ids: Sequence[str]) -> dict[str, Cached]:
    answers = await for_each(client, "MGET", _balance, team_ids)
    found = {}
    for team_id, (balance, version) in zip(team_ids, answers, strict=True):
        if balance is not None:
            found[team_id] = Cached(int(balance), None if version is None else int(version))
    return found


async def _read_settled(
    connection: AsyncConnection, team_ids: Sequence[str]
) -> Mapping[str, Settled]:
    rows = await connection.execute(_ACCOUNTS, {"team_ids": list(team_ids)})
    return {
        row.team_id: Settled(floor_nano_usd(row.balance_usd), row.version, row.has_pending)
        for row in rows
    }


def _finding(team_id: str, look: _Look) -> Finding:
    cached, settled = look.cached, look.settled
    found = f"{cached.balance_nano_usd} nano-USD, version {cached.version}"
    if settled is None:
        return Finding(Kind.CACHED_WITHOUT_ACCOUNT, team_id, "cached balance", "an account", "none")
    kind = Kind.CACHED_VERSION if look.verdict is Verdict.AHEAD else Kind.CACHED_BALANCE
    due = f"{settled.balance_nano_usd} nano-USD, version {settled.version}"
    return Finding(kind, team_id, "cached balance", due, found)
