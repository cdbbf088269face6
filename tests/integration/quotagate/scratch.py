"""Copies of a database that a test may falsify, as its owner or as one whom nothing stops."""

from dataclasses import dataclass, field

import asyncpg
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from kit.settings import load
from quotagate.stack import Servers
from quotagate.stores import StoreSettings

# What the database itself holds against a falsifier, and short words for what he falsifies.
_OFF = "".join(
    f"ALTER TABLE {table} DISABLE TRIGGER ALL;"
    for table in ("account", "ledger_entry", "usage_charge", "inference_record", "price", "team")
)
_WORDS = """
CREATE FUNCTION pg_temp.record(text) RETURNS bigint LANGUAGE sql AS
    'SELECT record_id FROM inference_record WHERE inference_id = $1';
CREATE FUNCTION pg_temp.entry(text, bigint) RETURNS bigint LANGUAGE sql AS
    'SELECT entry_id FROM ledger_entry WHERE team_id = $1 AND account_version = $2';
"""
# Apart from what other tests put into the cache.
_REDIS_DATABASE = 9


@dataclass(slots=True)
class Scratch:
    """One database, as each role sees it."""

    name: str
    servers: Servers
    engines: dict[str, AsyncEngine] = field(default_factory=dict)

    def url(self, role: str) -> str:
        """Return the address with a role's password."""
        address = make_url(self.servers.database_urls[role]).set(database=self.name)
        return address.render_as_string(hide_password=False)

    def engine(self, role: str) -> AsyncEngine:
        """Return the database as `settlement` or `control_plane` sees it."""
        if role not in self.engines:
            url = make_url(self.url(f"quotagate_{role}")).set(drivername="postgresql+asyncpg")
            self.engines[role] = create_async_engine(url, poolclass=NullPool)
        return self.engines[role]

    @property
    def settings(self) -> StoreSettings:
        """What a command reads to look into this database, and into a cache of the tests' own."""
        servers = self.servers
        return load(
            StoreSettings,
            {
                "QUOTAGATE_NATS_URL": servers.nats_url,
                "QUOTAGATE_NATS_MONITOR_URL": servers.nats_monitor_url,
                "QUOTAGATE_NATS_USER": "operator",
                "QUOTAGATE_NATS_PASSWORD": servers.nats_passwords["operator"],
                "QUOTAGATE_REDIS_URL": f"{servers.redis_url[:-1]}{_REDIS_DATABASE}",
                "QUOTAGATE_DATABASE_URL": self.url("quotagate"),
            },
        )

    async def run(self, script: str) -> None:
        """Run SQL as the superuser."""
        connection = await asyncpg.connect(self.url("postgres"))
        try:
            await connection.execute(script)
        finally:
            await connection.close()

    async def falsify(self, script: str) -> None:
        """Run SQL as the superuser, with every trigger and foreign key off.

        It may say `pg_temp.record(inference_id)` and `pg_temp.entry(team_id, version)`.
        """
        await self.run(f"{_OFF} {_WORDS} {script}")

    async def close(self) -> None:
        """Close all connections."""
        for engine in self.engines.values():
            await engine.dispose()


async def make_database(servers: Servers, name: str, template: str) -> Scratch:
    """Copy a database that nobody is connected to."""
    await _run(servers, f'CREATE DATABASE "{name}" TEMPLATE "{template}" OWNER quotagate')
    return Scratch(name, servers)


async def drop_database(servers: Servers, name: str) -> None:
    """Remove a database, whoever is connected to it."""
    await _run(servers, f'DROP DATABASE "{name}" WITH (FORCE)')


async def _run(servers: Servers, statement: str) -> None:
    url = make_url(servers.database_urls["postgres"]).set(database="postgres")
    connection = await asyncpg.connect(url.render_as_string(hide_password=False))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
