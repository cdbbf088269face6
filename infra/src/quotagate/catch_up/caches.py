"""Makes the caches forget what is newer than the database.

A cached fact carries the version of the row it was read from, and an older one never replaces it.
After a restore the rows begin again at older versions, so a cached balance or tier from before it
would stay for up to an hour, and what was counted as spent until its period ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncEngine

from kit.redis import RedisClient
from quotagate.cached_teams import cached_teams, for_each
from quotagate.statements import statement
from redis_scripts.keys import SPEND_PATTERN, TEAM_PATTERN, TeamKeys, team_of_fenced_key

_TEAMS = statement(Path(__file__).with_name("sql"), "teams")
_SCAN_KEYS = 500


@dataclass(frozen=True, slots=True)
class Cached:
    """What the cache knows of a team. None: nothing."""

    tier_id: str | None
    tier_version: int | None
    account_version: int | None


@dataclass(frozen=True, slots=True)
class Stored:
    """What the database says of a team, read after the cached facts."""

    tier_id: str
    tier_version: int
    account_version: int


def is_newer(cached: Cached, stored: Stored | None) -> bool:
    """Return whether the cache knows what the database doesn't; `stored` None: it has no such team.

    A tier of the same version may be another one: the version was given twice.
    """
    if stored is None:
        return True
    return (
        (cached.account_version or 0) > stored.account_version
        or (cached.tier_version or 0) > stored.tier_version
        or cached.tier_id not in {None, stored.tier_id}
    )


async def forget_newer(client: RedisClient, engine: AsyncEngine) -> list[str]:
    """Remove tier and balance of each team of which the cache knows what the database doesn't.

    What is counted as spent is removed of every team: it is counted anew from the database by the
    next call, and its keys live longer than a balance, by which one could tell. Debts and leases
    stay. Returns the teams in the order of their ids. Balances and tiers come back
    from the database with the next call of each.

    Raises:
        redis.RedisError, SQLAlchemyError: a store doesn't answer; some may be removed.

    """
    forgotten: set[str] = set()
    async for team_ids in cached_teams(client, TEAM_PATTERN, team_of_fenced_key):
        cached = await _cached(client, team_ids)
        stored = await _stored(engine, team_ids)
        newer = [t for t in team_ids if is_newer(cached[t], stored.get(t))]
        await _forget(client, newer)
        forgotten.update(newer)
    async for key in client.scan_iter(match=SPEND_PATTERN, count=_SCAN_KEYS):
        # One by one: in a cluster they lie in different slots.
        await client.unlink(key)
    return sorted(forgotten)


def _facts(keys: TeamKeys) -> tuple[str, str, str, str]:
    return keys.tier, keys.tier_version, keys.balance, keys.balance_version


async def _cached(client: RedisClient, team_ids: Sequence[str]) -> dict[str, Cached]:
    answers = await for_each(client, "MGET", _facts, team_ids)
    return {
        team_id: Cached(
            None if tier_id is None else tier_id.decode(),
            None if tier_version is None else int(tier_version),
            None if account_version is None else int(account_version),
        )
        for team_id, (tier_id, tier_version, _, account_version) in zip(
            team_ids, answers, strict=True
        )
    }


async def _forget(client: RedisClient, team_ids: Sequence[str]) -> None:
    await for_each(client, "UNLINK", _facts, team_ids)


async def _stored(engine: AsyncEngine, team_ids: Sequence[str]) -> dict[str, Stored]:
    async with engine.connect() as connection:
        rows = await connection.execute(_TEAMS, {"team_ids": list(team_ids)})
        return {
            row.team_id: Stored(row.tier_id, row.tier_version, row.account_version) for row in rows
        }
