"""What the database says of one team, read by its owner; and what must always be true of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from kit.money import exact_sum


@dataclass(frozen=True, slots=True)
class Entry:
    direction: str
    reason: str
    amount_usd: Decimal
    balance_after_usd: Decimal
    version: int


class Books:
    """Records, charges, ledger and balance."""

    def __init__(self, owner: AsyncEngine) -> None:
        self._owner = owner

    async def states(self, team_id: str) -> dict[tuple[str, int], str]:
        """Return the state of each record by inference_id and attempt_no."""
        rows = await self._all(
            "SELECT inference_id, attempt_no, state FROM inference_record WHERE team_id = :team_id",
            team_id,
        )
        return {(row[0], row[1]): row[2] for row in rows}

    async def records(self, team_id: str) -> list[Mapping[str, Any]]:
        """Return all that is stored of each record, in the order in which they were stored."""
        query = "SELECT * FROM inference_record WHERE team_id = :team_id ORDER BY record_id"
        async with self._owner.connect() as connection:
            rows = await connection.execute(text(query), {"team_id": team_id})
            return [dict(row) for row in rows.mappings()]

    async def held_reasons(self, team_id: str) -> list[str]:
        rows = await self._all(
            "SELECT held_reason FROM inference_record WHERE team_id = :team_id"
            " AND state = 'HELD' ORDER BY record_id",
            team_id,
        )
        return [row[0] for row in rows]

    async def charges(self, team_id: str) -> list[Decimal]:
        """Return the amounts of the usage charges, in the order of the records."""
        rows = await self._all(
            "SELECT amount_usd FROM usage_charge WHERE team_id = :team_id"
            " ORDER BY inference_record_id",
            team_id,
        )
        return [row[0] for row in rows]

    async def ledger(self, team_id: str) -> list[Entry]:
        rows = await self._all(
            "SELECT direction, reason, amount_usd, balance_after_usd, account_version"
            " FROM ledger_entry WHERE team_id = :team_id ORDER BY account_version",
            team_id,
        )
        return [Entry(*row) for row in rows]

    async def balance_usd(self, team_id: str) -> Decimal:
        rows = await self._all("SELECT balance_usd FROM account WHERE team_id = :team_id", team_id)
        balance: Decimal = rows[0][0]
        return balance

    async def version(self, team_id: str) -> int:
        rows = await self._all("SELECT version FROM account WHERE team_id = :team_id", team_id)
        version: int = rows[0][0]
        return version

    async def assert_they_add_up(self, team_id: str) -> None:
        """Balance, ledger, charges and records agree, to the last digit."""
        ledger, charges = await self.ledger(team_id), await self.charges(team_id)
        signed = [
            entry.amount_usd if entry.direction == "CREDIT" else entry.amount_usd.copy_negate()
            for entry in ledger
        ]
        balance_usd = await self.balance_usd(team_id)
        assert balance_usd == exact_sum(*signed)
        assert [entry.version for entry in ledger] == list(range(1, len(ledger) + 1))
        assert not ledger or ledger[-1].balance_after_usd == balance_usd
        used = [entry.amount_usd for entry in ledger if entry.reason == "USAGE"]
        assert exact_sum(*used) == exact_sum(*charges)
        settled = [state for state in (await self.states(team_id)).values() if state == "SETTLED"]
        assert len(settled) == len(charges)

    async def execute(self, statement: str, **parameters: object) -> None:
        """Change something as the owner of the database may."""
        async with self._owner.begin() as connection:
            await connection.execute(text(statement), parameters)

    async def _all(self, query: str, team_id: str) -> list[tuple[Any, ...]]:
        async with self._owner.connect() as connection:
            rows = await connection.execute(text(query), {"team_id": team_id})
            return [tuple(row) for row in rows]
