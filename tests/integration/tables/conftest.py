"""One engine per role of the migrated database; each sees only what its service would."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from quotagate.stack import Servers


@dataclass(frozen=True, slots=True)
class Database:
    """The database as its owner and as each service's role."""

    owner: AsyncEngine
    tier_cache: AsyncEngine
    settlement: AsyncEngine
    control_plane: AsyncEngine

    def engine(self, role: str) -> AsyncEngine:
        engine: AsyncEngine = getattr(self, role)
        return engine


def _engine(url: str) -> AsyncEngine:
    return create_async_engine(make_url(url).set(drivername="postgresql+asyncpg"))


@pytest.fixture(scope="session")
async def database(servers: Servers) -> AsyncIterator[Database]:
    urls = servers.database_urls
    engines = Database(
        owner=_engine(urls["quotagate"]),
        tier_cache=_engine(urls["quotagate_tier_cache"]),
        settlement=_engine(urls["quotagate_settlement"]),
        control_plane=_engine(urls["quotagate_control_plane"]),
    )
    yield engines
    for role in Database.__slots__:
        await engines.engine(role).dispose()
