"""What people decide at the control plane, written to the database with its rights."""

import uuid
from decimal import Decimal
from typing import Any

from integration.tables.rows import ONE_DOLLAR_EACH, new_name
from sqlalchemy import insert, text, update
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlmodel import col

from quotagate.stack import Servers
from tables import ApiKey, Price, Team, Tier
from tables.account import Entry, Posting, credit, debit
from tables.ledger import Reason

PROVIDER = "fake"


class Desk:
    """Opens tiers, teams, keys and prices, and changes them. Announces nothing."""

    def __init__(self, servers: Servers) -> None:
        url = make_url(servers.database_urls["quotagate_control_plane"])
        self._engine: AsyncEngine = create_async_engine(url.set(drivername="postgresql+asyncpg"))

    async def close(self) -> None:
        await self._engine.dispose()

    async def open_tier(
        self, *, rpm: int = 60, tpm: int = 60_000, burst: int = 0, **limits: Any
    ) -> str:
        """Open a tier; `limits` are its further ones, as JSON has them."""
        tier_id = new_name("tier")
        async with self._engine.begin() as connection:
            await connection.execute(
                insert(Tier).values(
                    tier_id=tier_id, rpm=rpm, tpm=tpm, request_burst=burst, limits=limits
                )
            )
        return tier_id

    async def change_policy(self, tier_id: str, **values: Any) -> None:
        """Give a tier other numbers; `limits` are its further ones, all of them."""
        async with self._engine.begin() as connection:
            await connection.execute(
                update(Tier).where(col(Tier.tier_id) == tier_id).values(**values)
            )

    async def open_team(self, tier_id: str | None = None, *, balance_usd: str = "0") -> str:
        """Open a team whose account holds this much; by default in a tier of its own."""
        team_id, tier_id = new_name("team"), tier_id or await self.open_tier()
        async with self._engine.begin() as connection:
            await connection.execute(
                insert(Team).values(team_id=team_id, name="A team", tier_id=tier_id)
            )
        if balance_usd != "0":
            await self.adjust(team_id, balance_usd)
        return team_id

    async def move_team(self, team_id: str, tier_id: str) -> int:
        """Give the team another tier; return its new tier version."""
        async with self._engine.begin() as connection:
            version: int = (
                await connection.execute(
                    update(Team)
                    .where(col(Team.team_id) == team_id)
                    .values(tier_id=tier_id)
                    .returning(col(Team.tier_version))
                )
            ).scalar_one()
        return version

    async def delete_team(self, team_id: str) -> None:
        async with self._engine.begin() as connection:
            await connection.execute(
                update(Team).where(col(Team.team_id) == team_id).values(deleted_at=text("now()"))
            )

    async def adjust(self, team_id: str, amount_usd: str) -> Entry:
        """Credit, or with a minus sign debit, the team's account."""
        amount = Decimal(amount_usd)
        posting = Posting(team_id=team_id, amount_usd=abs(amount), reason=Reason.ADJUSTMENT)
        async with self._engine.begin() as connection:
            return await (credit if amount > 0 else debit)(connection, posting)

    async def add_key(self, team_id: str, key_id: str | None = None, **columns: object) -> str:
        key_id = key_id or new_name("key")
        key = {"name": "A key", "secret_hash": bytes(32), "limits": {}, **columns}
        async with self._engine.begin() as connection:
            await connection.execute(insert(ApiKey).values(key_id=key_id, team_id=team_id, **key))
        return key_id

    async def revoke_key(self, key_id: str) -> None:
        async with self._engine.begin() as connection:
            await connection.execute(
                update(ApiKey).where(col(ApiKey.key_id) == key_id).values(revoked_at=text("now()"))
            )

    async def add_price(self, model: str, effective_from: str = "now()", **usd: str) -> str:
        """Add a version of one dollar per class, but for those named; return its id."""
        changed = {f"{name}_usd_per_million": Decimal(amount) for name, amount in usd.items()}
        async with self._engine.begin() as connection:
            price_id: uuid.UUID = (
                await connection.execute(
                    insert(Price)
                    .values(
                        provider=PROVIDER,
                        model=model,
                        effective_from=text(effective_from),
                        **(ONE_DOLLAR_EACH | changed),
                    )
                    .returning(col(Price.price_id))
                )
            ).scalar_one()
        return str(price_id)
