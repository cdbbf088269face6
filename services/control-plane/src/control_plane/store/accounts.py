"""Accounts: read here, changed by the account's own functions alone."""

from collections.abc import Sequence

from sqlalchemy import select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from control_plane.domain.cursors import Key
from control_plane.domain.errors import team_not_found
from tables import Account, LedgerEntry
from tables.account import Entry, Posting, credit, debit
from tables.errors import UnknownAccountError
from tables.ledger import Direction


async def get(session: AsyncSession, team_id: str) -> Account:
    """Return a team's account. Raises NotFoundError where there is no such team."""
    account = await session.get(Account, team_id)
    if account is None:
        raise team_not_found(team_id)
    return account


async def post(session: AsyncSession, direction: Direction, posting: Posting) -> Entry:
    """Credit or debit an account, and hold it until the commit.

    Raises:
        NotFoundError: there is no such team.

    """
    move = credit if direction is Direction.CREDIT else debit
    try:
        return await move(session, posting)
    except UnknownAccountError as error:
        raise team_not_found(posting.team_id) from error


async def ledger_page(
    session: AsyncSession, team_id: str, after: Key | None, limit: int
) -> Sequence[LedgerEntry]:
    """Return a team's ledger entries by (version), the newest first, those after that sort key."""
    statement = select(LedgerEntry).where(col(LedgerEntry.team_id) == team_id)
    if after is not None:
        statement = statement.where(tuple_(col(LedgerEntry.account_version)) < after)
    order = col(LedgerEntry.account_version).desc()
    return (await session.scalars(statement.order_by(order).limit(limit))).all()
