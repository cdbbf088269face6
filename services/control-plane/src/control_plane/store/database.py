"""Transactions: one to read, one to change."""

import contextlib
from collections.abc import AsyncIterator
from datetime import datetime

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker

# A change waits this long for another that holds the same row, then it is refused as unavailable.
_LOCK_TIMEOUT = text("SET LOCAL lock_timeout = '2s'")
_READ_ONLY = text("SET TRANSACTION READ ONLY")


class Database:
    """Opens transactions on the bounded pool of an engine."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._sessions = async_sessionmaker(engine, expire_on_commit=False)

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncSession]:
        """Give a session that can't write."""
        async with self._sessions() as session, session.begin():
            await session.execute(_READ_ONLY)
            yield session

    @contextlib.asynccontextmanager
    async def changing(self) -> AsyncIterator[AsyncSession]:
        """Give a session whose changes are committed at the end, all or none."""
        async with self._sessions() as session, session.begin():
            await session.execute(_LOCK_TIMEOUT)
            yield session


async def now(session: AsyncSession) -> datetime:
    """Return the database's clock, read at this moment and not at the transaction's start."""
    instant: datetime = (await session.execute(select(func.clock_timestamp()))).scalar_one()
    return instant
