"""The cached balances of one team, as others see and move them."""

from redis.asyncio import Redis

from redis_scripts.keys import team_keys


class CachedTeam:
    """Reads and moves what is cached, with all rights."""

    def __init__(self, operator: Redis, team_id: str) -> None:
        self._operator = operator
        self._keys = team_keys(team_id)

    async def read(self) -> tuple[int, int]:
        """Return balance in nano-USD, and version."""
        balance, version = await self._operator.mget(self._keys.balance, self._keys.balance_version)
        assert balance is not None
        assert version is not None
        return int(balance), int(version)

    async def write(self, balance_nano_usd: int, version: int) -> None:
        await self._operator.mset(
            {self._keys.balance: balance_nano_usd, self._keys.balance_version: version}
        )

    async def debit(self, amount_nano_usd: int) -> None:
        """A rough debit."""
        await self._operator.decrby(self._keys.balance, amount_nano_usd)

    async def forget(self) -> None:
        await self._operator.delete(self._keys.balance, self._keys.balance_version)

    async def life_ms(self) -> int:
        life: int = await self._operator.pttl(self._keys.balance)
        return life
