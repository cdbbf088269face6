"""Everything around settlement on one set of servers: who calls, who looks, who decides."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import nats
from integration.bus import Bus, bus_of
from integration.desk import Desk
from integration.settlement.books import Books
from integration.settlement.cache import CachedTeam
from integration.settlement.team import CallingTeam
from integration.tables.rows import new_name
from nats.aio.client import Client
from redis.asyncio import Redis
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from quotagate.stack import Servers


@dataclass(frozen=True, slots=True)
class World:
    """Opens teams with $10 whose model costs $1 per million tokens."""

    desk: Desk
    books: Books
    edge: Bus
    nats: Client
    redis: Redis

    async def open_team(self) -> CallingTeam:
        team_id = await self.desk.open_team(balance_usd="10")
        price_id = await self.desk.add_price(new_name("model"))
        return CallingTeam(team_id, price_id, self.edge, self.nats)

    def cached(self, team: CallingTeam) -> CachedTeam:
        return CachedTeam(self.redis, team.team_id)


@asynccontextmanager
async def world_of(servers: Servers) -> AsyncIterator[World]:
    """Open all of it; it has every right that its parts have in the field."""
    async with AsyncExitStack() as stack:
        desk = Desk(servers)
        stack.push_async_callback(desk.close)
        owner = create_async_engine(
            make_url(servers.database_url).set(drivername="postgresql+asyncpg")
        )
        stack.push_async_callback(owner.dispose)
        edge = await stack.enter_async_context(bus_of(servers, "edge-proxy"))
        operator = await nats.connect(
            servers.nats_url, user="operator", password=servers.nats_passwords["operator"]
        )
        stack.push_async_callback(operator.close)
        redis: Redis = Redis.from_url(servers.redis_url)
        stack.push_async_callback(redis.aclose)
        yield World(desk, Books(owner), edge, operator, redis)
