"""One team's keys, set and read past the scripts."""

from dataclasses import dataclass

from redis.asyncio import Redis

from redis_scripts.keys import TeamKeys, team_keys

TIER = "tier_1"


@dataclass(frozen=True)
class Team:
    """A team and a client that may look at its keys and set them."""

    team_id: str
    redis: Redis

    @property
    def keys(self) -> TeamKeys:
        return team_keys(self.team_id)

    async def now_us(self) -> int:
        """Return the server's clock."""
        seconds, micros = await self.redis.time()
        return seconds * 1_000_000 + micros

    async def put(
        self,
        *,
        request_tat_us: int | None = None,
        token_tat_us: int | None = None,
        tier: str | None = TIER,
        balance_nano_usd: int | None = 1_000_000,
        version: int = 1,
    ) -> None:
        """Set the keys; None leaves one out. All live an hour and a half."""
        values = {
            self.keys.request_tat: request_tat_us,
            self.keys.token_tat: token_tat_us,
            self.keys.tier: tier,
            self.keys.balance: balance_nano_usd,
            self.keys.balance_version: None if balance_nano_usd is None else version,
        }
        for key, value in values.items():
            if value is not None:
                await self.redis.set(key, value, px=5_400_000)

    async def snapshot(self) -> dict[str, tuple[bytes, int]]:
        """Return each key's serialised value and the very millisecond at which it expires.

        Of all the keys that the team has at the moment, those of its further limits too.
        """
        snapshot = {}
        for found in await self.redis.keys(f"quota:{{{self.team_id}}}:*"):
            key = found.decode() if isinstance(found, bytes) else found
            value = await self.redis.dump(key)
            if value is not None:
                snapshot[key] = (value, await self.redis.pexpiretime(key))
        return snapshot

    async def tat_us(self, key: str) -> int | None:
        """Return a stored TAT."""
        value = await self.redis.get(key)
        return None if value is None else int(value)
