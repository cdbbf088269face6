"""Examines Postgres: that a commit is durable, and that the schema and the rights stand."""

from pathlib import Path

from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from kit import postgres
from kit.flaws import Flaw
from quotagate import stores
from quotagate.doctor.clocks import Stopwatch
from quotagate.doctor.examined import Examined, version_flaws
from quotagate.doctor.rights import RIGHTS, Right, rights_flaws
from quotagate.sql_scripts import migrations_folder
from quotagate.statements import statement
from quotagate.stores import StoreSettings
from tables.guards import guard_flaws

_SQL = Path(__file__).with_name("sql")
_SERVER, _OVERRIDES, _ROLES, _RIGHTS, _COLUMNS = (
    statement(_SQL, name) for name in ("server", "overrides", "roles", "rights", "columns")
)
_IS_MIGRATED = text("SELECT to_regclass('public.alembic_version') IS NOT NULL")
_REVISION = text("SELECT version_num FROM alembic_version")
_LEAST_VERSION = (15,)


async def examine_database(settings: StoreSettings) -> Examined:
    """Examine the server, the schema and the services' roles. Any role may ask.

    Raises:
        CannotTellError: Postgres doesn't answer.

    """
    async with stores.database(settings) as engine, engine.connect() as connection:
        watch = Stopwatch()
        server = (await connection.execute(_SERVER)).one()
        clock = watch.reading("postgres", server.now_us)
        flaws = [
            *version_flaws("postgres", server.version, _LEAST_VERSION, "The migrations need it."),
            *([_STANDBY] if server.is_standby else []),
            *await database_flaws(connection),
        ]
    return Examined(f"postgres {server.version}", clock, flaws)


async def database_flaws(connection: AsyncConnection) -> list[Flaw]:
    """Return what is wrong with the settings, the schema and the roles."""
    flaws = postgres.flaws(await postgres.durability(connection))
    flaws += await _override_flaws(connection)
    if not await connection.scalar(_IS_MIGRATED):
        return [*flaws, _NOT_MIGRATED]
    flaws += await _revision_flaws(connection)
    flaws += await guard_flaws(connection)
    flaws += await _role_flaws(connection)
    return flaws


_STANDBY = Flaw(
    what="postgres: this is a standby",
    why="Nothing can be written here: nothing is settled.",
    mend="Point QUOTAGATE_DATABASE_URL at the primary.",
)
_NOT_MIGRATED = Flaw(
    what="postgres: the database has no tables",
    why="Nothing can be stored.",
    mend="quotagate migrate",
)


async def _override_flaws(connection: AsyncConnection) -> list[Flaw]:
    """Look at what roles and databases set for themselves."""
    flaws = []
    for row in await connection.execute(_OVERRIDES):
        for flaw in postgres.flaws({row.name: row.value}):
            whose = f"role {row.role}" if row.role != "-" else "the database"
            flaws.append(
                Flaw(
                    what=f"{flaw.what} for {whose}",
                    why=flaw.why,
                    mend=f"ALTER ROLE or ALTER DATABASE ... RESET {row.name}",
                )
            )
    return flaws


async def _revision_flaws(connection: AsyncConnection) -> list[Flaw]:
    revision = await connection.scalar(_REVISION)
    directory = ScriptDirectory(str(migrations_folder()))
    known = {script.revision for script in directory.walk_revisions()}
    head = directory.get_current_head()
    if revision == head:
        return []
    if revision in known:
        return [
            Flaw(
                what=f"postgres: the database is at revision {revision}, not {head}",
                why="What the new code needs isn't there.",
                mend="quotagate migrate",
            )
        ]
    return [
        Flaw(
            what=f"postgres: this command doesn't know the database's revision {revision}",
            why="It may judge a newer schema by an older one's measure.",
            mend="Use the quotagate command of the newest release.",
            dangerous=False,
        )
    ]


async def _role_flaws(connection: AsyncConnection) -> list[Flaw]:
    roles = sorted(RIGHTS)
    rows = (await connection.execute(_ROLES, {"roles": roles})).all()
    missing = sorted(set(roles).difference(row.role for row in rows))
    flaws = [
        Flaw(
            what=f"postgres: there is no role {role}",
            why="Its service can't log in.",
            mend="quotagate migrate makes the roles.",
        )
        for role in missing
    ]
    for row in rows:
        for wrong, what in (
            (row.is_powerful, "has a superuser's or a creator's attributes"),
            (row.is_member, "is a member of another role"),
            (row.is_owner, "owns tables"),
        ):
            if wrong:
                flaws.append(
                    Flaw(
                        what=f"postgres: {row.role} {what}",
                        why="It can give itself the rights that are kept from it, and write the"
                        " ledger by hand.",
                        mend=f"ALTER ROLE {row.role} NOSUPERUSER NOCREATEROLE NOCREATEDB"
                        " NOREPLICATION NOBYPASSRLS; REVOKE its memberships; the owner is"
                        " who runs quotagate migrate.",
                    )
                )
    columns = {row.relname: frozenset(row.names) for row in await connection.execute(_COLUMNS)}
    live = [Right(*row) for row in await connection.execute(_RIGHTS, {"roles": roles})]
    return [*flaws, *rights_flaws(live, columns, (row.role for row in rows))]
