"""One owner's windows on a real server: time passes by moving what is logged into the past."""

from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from admission.domain.windows import Log
from admission.store.terms import window_terms
from contracts.windows import Window
from redis_scripts.keys import Owner


@dataclass(frozen=True)
class Logs:
    """The logs of an owner's windows, past the scripts."""

    owner: Owner
    windows: tuple[Window, ...]
    key_id: str
    redis: Redis

    @property
    def keys(self) -> list[str]:
        """Their names, in the windows' order."""
        terms = window_terms(self.windows, "", self.key_id)
        return [self.owner.key(each.place) for each in terms]

    async def stored(self) -> tuple[Log, ...]:
        """Return when each logged request was, oldest first."""
        logs = [await self._log(key) for key in self.keys]
        return tuple(tuple(log.values()) for log in logs)

    async def age(self, by_us: int) -> None:
        """Move everything into the past; a negative age is a clock that was stepped back."""
        for key in self.keys:
            aged = {name: at_us - by_us for name, at_us in (await self._log(key)).items()}
            if aged:
                await self.redis.zadd(key, aged)

    async def dump(self) -> list[object]:
        """Return every log byte by byte, with the millisecond it expires at."""
        async with self.redis.pipeline(transaction=False) as pipeline:
            for key in self.keys:
                pipeline.dump(key)
                pipeline.pexpiretime(key)
            return list(await pipeline.execute())

    async def _log(self, key: str) -> dict[str, int]:
        rows: Any = await self.redis.zrange(key, 0, -1, withscores=True)
        return {name.decode(): int(score) for name, score in rows}
