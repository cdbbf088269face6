"""The tables as Python describes them are the tables that the migrations make."""

from collections.abc import Sequence
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from integration.tables.conftest import Database
from sqlalchemy import Connection, Double, Float, Numeric, Row, text

from tables import METADATA


def _differences(connection: Connection) -> list[Any]:
    context = MigrationContext.configure(
        connection,
        opts={
            "compare_type": True,
            "compare_server_default": True,
            "autogenerate_plugins": [
                "alembic.autogenerate.*",
                "alembic.ext.checkconstraint_byname",
            ],
            "include_name": lambda name, kind, _: (
                not (kind == "table" and name == "alembic_version")
            ),
        },
    )
    return list(compare_metadata(context, METADATA))


async def test_metadata_and_migrated_schema_agree(database: Database) -> None:
    async with database.owner.connect() as connection:
        assert await connection.run_sync(_differences) == []


async def _migrated_and_drafted(
    database: Database, query: str
) -> tuple[Sequence[Row[Any]], Sequence[Row[Any]]]:
    """Return what Postgres says of the migrated tables, and of drafts made from the metadata."""
    async with database.owner.connect() as connection:
        migrated = (await connection.execute(text(query), {"schema": "public"})).all()
        # Rolled back: the draft is gone with the transaction.
        await connection.execute(text("CREATE SCHEMA draft"))
        await connection.execute(text("SET LOCAL search_path = draft"))
        await connection.run_sync(METADATA.create_all, checkfirst=False)
        drafted = (await connection.execute(text(query), {"schema": "draft"})).all()
    return migrated, drafted


async def test_check_constraints_mean_the_same_in_both(database: Database) -> None:
    migrated, drafted = await _migrated_and_drafted(
        database,
        "SELECT c.conname, pg_get_constraintdef(c.oid) FROM pg_constraint AS c"
        " JOIN pg_class AS t ON t.oid = c.conrelid"
        " WHERE c.contype = 'c' AND t.relnamespace = to_regnamespace(:schema) ORDER BY 1",
    )
    assert drafted == migrated
    assert len(migrated) > 30


async def test_storage_options_are_the_same_in_both(database: Database) -> None:
    migrated, drafted = await _migrated_and_drafted(
        database,
        "SELECT relname, (SELECT array_agg(o ORDER BY o) FROM unnest(reloptions) AS o)"
        " FROM pg_class WHERE relnamespace = to_regnamespace(:schema) AND relkind = 'r'"
        " AND reloptions IS NOT NULL ORDER BY 1",
    )
    assert drafted == migrated
    assert [row[0] for row in migrated] == ["inference_record"]


def test_no_column_of_the_metadata_is_a_binary_fraction() -> None:
    for table in METADATA.tables.values():
        for column in table.columns:
            assert not isinstance(column.type, (Float, Double)), column
            if isinstance(column.type, Numeric):
                assert (column.type.precision, column.type.scale) == (None, None), column
                assert column.type.asdecimal, column


def test_every_amount_is_numeric_and_says_its_unit() -> None:
    numeric = {
        f"{table.name}.{column.name}"
        for table in METADATA.tables.values()
        for column in table.columns
        if isinstance(column.type, Numeric)
    }
    usd = {
        f"{table.name}.{column.name}"
        for table in METADATA.tables.values()
        for column in table.columns
        if "usd" in column.name
    }
    assert numeric == usd
    assert len(usd) == 13


async def test_no_column_of_the_database_is_a_binary_fraction(database: Database) -> None:
    async with database.owner.connect() as connection:
        columns = (
            await connection.execute(
                text(
                    "SELECT table_name, column_name, data_type, numeric_precision, numeric_scale,"
                    " datetime_precision FROM information_schema.columns"
                    " WHERE table_schema = 'public'"
                )
            )
        ).all()
    kinds = {column.data_type for column in columns}
    assert kinds.isdisjoint({"real", "double precision", "money", "timestamp without time zone"})
    amounts = [column for column in columns if column.data_type == "numeric"]
    assert len(amounts) == 13
    assert all(c.numeric_precision is None and c.numeric_scale is None for c in amounts)


async def test_ids_sort_in_the_database_as_in_python(database: Database) -> None:
    ids = ["a", "B", "_", "-", "0", "A1", "a-", "aa", "Z"]
    async with database.owner.connect() as connection:
        collations = (
            await connection.scalars(
                text(
                    "SELECT collation_name FROM information_schema.columns"
                    " WHERE table_schema = 'public' AND column_name IN ('team_id', 'tier_id')"
                )
            )
        ).all()
        in_database = (
            await connection.scalars(
                text(
                    'SELECT id FROM unnest(CAST(:ids AS text[])) AS u (id) ORDER BY id COLLATE "C"'
                ),
                {"ids": ids},
            )
        ).all()
    assert set(collations) == {"C"}
    assert in_database == sorted(ids)
