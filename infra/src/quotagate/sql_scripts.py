"""Finds the migrations, and runs their .sql files whole."""

from pathlib import Path

import asyncpg
from sqlalchemy import Connection

from quotagate.migration_errors import ScriptError


def migrations_folder() -> Path:
    """Return the folder of the migrations: inside the package in a wheel, above it in the tree."""
    inside = Path(__file__).with_name("migrations")
    return inside if inside.is_dir() else Path(__file__).parents[2] / "migrations"


def run_scripts(connection: Connection, revision: str, *names: str) -> None:
    """Run `sql/<revision>/<name>.sql` for each name, in the transaction of `connection`.

    A script is sent as it is: SQLAlchemy would prepare it, and only single statements can be.

    Raises:
        ScriptError: the server refused; the text says which script.

    """
    # The adapter opens the transaction with its own first statement, and this is one.
    connection.exec_driver_sql("SELECT 1")
    for name in names:
        script = (migrations_folder() / "sql" / revision / f"{name}.sql").read_text("utf-8")

        async def execute(driver: asyncpg.Connection, script: str = script) -> None:
            await driver.execute(script)

        try:
            connection.connection.run_async(execute)
        except asyncpg.PostgresError as error:
            raise ScriptError(f"{revision}/{name}.sql: {error}") from error
