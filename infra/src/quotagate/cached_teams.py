"""Walks over what is cached of all teams, in chunks, whatever number there are."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from redis.asyncio import Redis

from kit.redis import RedisClient
from redis_scripts.keys import TeamKeys, team_keys

_CHUNK_TEAMS = 500


async def cached_teams(
    client: RedisClient, pattern: str, team_of: Callable[[bytes], str | None]
) -> AsyncIterator[list[str]]:
    """Yield the teams that have keys of a pattern; a team may come twice.

    `team_of` tells whose a found key is; None: it is another kind of key.
    """
    found: set[str] = set()
    async for key in client.scan_iter(match=pattern, count=_CHUNK_TEAMS):
        team_id = team_of(key)
        if team_id is not None:
            found.add(team_id)
        if len(found) >= _CHUNK_TEAMS:
            yield sorted(found)
            found.clear()
    if found:
        yield sorted(found)


async def for_each(
    client: RedisClient,
    command: str,
    keys_of: Callable[[TeamKeys], tuple[str, ...]],
    team_ids: Sequence[str],
) -> list[Any]:
    """Send a command on some keys of each team; return the replies in the teams' order.

    One command a team, so that what a reply tells belongs together.
    """
    pipeline = (
        client.pipeline(transaction=False) if isinstance(client, Redis) else client.pipeline()
    )
    for team_id in team_ids:
        # Spelt out, because a cluster's pipeline refuses its own methods of several keys.
        pipeline.execute_command(command, *keys_of(team_keys(team_id)))
    return list(await pipeline.execute())
