"""Makes the caches forget what is newer than the database.

A cached fact carries the version of the row it was read from, and an older one never replaces it.
After a restore the rows begin again at older versions, so a cached balance or tier from before it
would stay for up to an hour.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import AsyncEngine

from kit.redis import RedisClient
from quotagate.statements import statement
from redis_scripts.keys import TEAM_PATTERN, TeamKeys, team_keys, team_of_fenced_key

_TEAMS = statement(Path(__file__).with_name("sql"), "teams")
_CHUNK_TEAMS = 500


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

    Debts and leases stay. Returns the teams in the order of their ids. Balances and tiers come back
    from the database with the next call of each.

    Raises:
        redis.RedisError, SQLAlchemyError: a store doesn't answer; some may be removed.

    """
    forgotten: set[str] = set()
    async for team_ids in _teams(client):
        cached = await _cached(client, team_ids)
        stored = await _stored(engine, team_ids)
        newer = [t for t in team_ids if is_newer(cached[t], stored.get(t))]
        await _forget(client, newer)
        forgotten.update(newer)
    return sorted(forgotten)


async def _teams(client: RedisClient) -> AsyncIterator[list[str]]:
    """Yield the teams of which something is cached; a team may come twice."""
    found: set[str] = set()
    async for key in client.scan_iter(match=TEAM_PATTERN, count=_CHUNK_TEAMS):
        team_id = team_of_fenced_key(key)
        if team_id is not None:
            found.add(team_id)
        if len(found) >= _CHUNK_TEAMS:
            yield sorted(found)
            found.clear()
    if found:
        yield sorted(found)


def _facts(keys: TeamKeys) -> tuple[str, str, str, str]:
    return keys.tier, keys.tier_version, keys.balance, keys.balance_version


async def _cached(client: RedisClient, team_ids: Sequence[str]) -> dict[str, Cached]:
    answers = await _each(client, "MGET", team_ids)
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
    await _each(client, "UNLINK", team_ids)


async def _each(client: RedisClient, command: str, team_ids: Sequence[str]) -> list[Any]:
    """Send a command for the facts of each team; one command a team, so they belong together."""
    pipeline = (
        client.pipeline(transaction=False) if isinstance(client, Redis) else client.pipeline()
    )
    for team_id in team_ids:
        # Spelt out, because a cluster's pipeline refuses its own methods of several keys.
        pipeline.execute_command(command, *_facts(team_keys(team_id)))
    return list(await pipeline.execute())


async def _stored(engine: AsyncEngine, team_ids: Sequence[str]) -> dict[str, Stored]:
    async with engine.connect() as connection:
        rows = await connection.execute(_TEAMS, {"team_ids": list(team_ids)})
        return {
            row.team_id: Stored(row.tier_id, row.tier_version, row.account_version) for row in rows
        }
