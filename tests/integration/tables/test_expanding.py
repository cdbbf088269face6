"""What goes before the new code takes nothing from the old code, which still runs beside it.

The old code knows the schema of a revision. So every column, function and right that was there is
there after each revision marked `before`, and an INSERT that knows no new column still works.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest
from alembic.config import Config
from alembic.script import Script, ScriptDirectory
from integration.tables.rows import new_name
from sqlalchemy.engine import make_url

from quotagate import migrate as migrate_module
from quotagate import sql_scripts
from quotagate.migrate import migrate
from quotagate.stack import Servers

COLUMNS = """
SELECT table_name, column_name, data_type,
       is_nullable = 'YES' OR column_default IS NOT NULL OR is_identity = 'YES' AS may_be_left_out
FROM information_schema.columns WHERE table_schema = 'public'
"""
FUNCTIONS = """
SELECT oid::regprocedure::text AS signature, prorettype::regtype::text AS returned
FROM pg_proc WHERE pronamespace = 'public'::regnamespace
"""
RIGHTS = """
SELECT grantee, privilege_type, table_name || '.' || column_name AS object
FROM information_schema.column_privileges WHERE table_schema = 'public'
UNION SELECT grantee, privilege_type, table_name
FROM information_schema.table_privileges WHERE table_schema = 'public'
UNION SELECT grantee, privilege_type, routine_name
FROM information_schema.routine_privileges WHERE routine_schema = 'public'
"""


@dataclass(frozen=True, slots=True)
class Schema:
    """What code may rely on."""

    columns: Mapping[tuple[str, str], str]
    """Each column's type."""
    left_out: frozenset[tuple[str, str]]
    """Columns that an INSERT need not name."""
    functions: frozenset[tuple[str, str]]
    rights: frozenset[tuple[str, ...]]

    def taken_from(self, before: "Schema") -> list[str]:
        """Return what code that was written for the schema before would miss."""
        tables = {table for table, _ in before.columns}
        return [
            *(
                f"column {'.'.join(name)} is {self.columns.get(name, 'gone')}, not {kind}"
                for name, kind in before.columns.items()
                if self.columns.get(name) != kind
            ),
            *(
                f"column {'.'.join(name)} must be given"
                for name in self.columns
                if name[0] in tables
                and name not in self.left_out
                and (name not in before.columns or name in before.left_out)
            ),
            *(f"function {name} is gone" for name, _ in before.functions - self.functions),
            *(f"right {' '.join(right)} is gone" for right in before.rights - self.rights),
        ]


def _revisions(folder: Path) -> Sequence[Script]:
    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    return list(ScriptDirectory.from_config(config).walk_revisions())[::-1]


REVISIONS = _revisions(sql_scripts.migrations_folder())


@pytest.fixture
async def url(servers: Servers) -> AsyncIterator[str]:
    """An empty database of the owner."""
    name = new_name("expanding").replace("-", "_")
    superuser = await asyncpg.connect(servers.database_urls["postgres"])
    await superuser.execute(f"CREATE DATABASE {name} OWNER quotagate")
    yield make_url(servers.database_url).set(database=name).render_as_string(hide_password=False)
    await superuser.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await superuser.close()


async def _schema(url: str) -> Schema:
    connection = await asyncpg.connect(url)
    try:
        columns = await connection.fetch(COLUMNS)
        return Schema(
            columns={(row["table_name"], row["column_name"]): row["data_type"] for row in columns},
            left_out=frozenset(
                (row["table_name"], row["column_name"]) for row in columns if row["may_be_left_out"]
            ),
            functions=frozenset(tuple(row) for row in await connection.fetch(FUNCTIONS)),
            rights=frozenset(
                tuple(row)
                for row in await connection.fetch(RIGHTS)
                if row["grantee"].startswith("quotagate_")
            ),
        )
    finally:
        await connection.close()


async def test_a_revision_before_the_code_takes_nothing_from_the_old_code(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "migrations"
    shutil.copytree(sql_scripts.migrations_folder(), folder, ignore=_only_env)
    monkeypatch.setattr(sql_scripts, "migrations_folder", lambda: folder)
    monkeypatch.setattr(migrate_module, "migrations_folder", lambda: folder)
    taken: dict[str, list[str]] = {}
    before: Schema | None = None
    for script in REVISIONS:
        # One revision more is there each time, as in each release.
        shutil.copy(script.path, folder / "versions")
        await asyncio.to_thread(migrate, url, {})
        after = await _schema(url)
        if before is not None and script.module.run == "before":
            taken[script.revision] = after.taken_from(before)
        before = after
    assert before is not None
    assert before.rights
    assert {name: missing for name, missing in taken.items() if missing} == {}


def _only_env(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(folder).name == "versions"]


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        pytest.param("DROP COLUMN name", "column thing.name is gone, not text", id="dropped"),
        pytest.param(
            "ALTER COLUMN size TYPE bigint", "column thing.size is bigint, not integer", id="typed"
        ),
        pytest.param(
            "ADD COLUMN more text NOT NULL", "column thing.more must be given", id="required"
        ),
        pytest.param(
            "ALTER COLUMN name SET NOT NULL", "column thing.name must be given", id="now required"
        ),
        pytest.param("ADD COLUMN more text NOT NULL DEFAULT ''", None, id="added"),
    ],
)
async def test_what_would_be_taken_is_seen(url: str, change: str, missing: str | None) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("CREATE TABLE thing (name text, size integer NOT NULL)")
        before = await _schema(url)
        await connection.execute(f"ALTER TABLE thing {change}")
        assert (await _schema(url)).taken_from(before) == ([missing] if missing else [])
    finally:
        await connection.close()
