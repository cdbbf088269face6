"""Makes the stack's Postgres cluster, and the owner and database in it."""

import os
import shutil
import tempfile
from pathlib import Path

import asyncpg

from quotagate.stack.errors import StackError
from quotagate.stack.ports import HOST
from quotagate.stack.postgres_binaries import PostgresBinaries
from quotagate.stack.unprivileged import Account

SUPERUSER = "postgres"
OWNER = "quotagate"
DATABASE = "quotagate"

# The first that can be written holds the cluster when its user can't enter the stack's folder.
_ELSEWHERE = ("/var/lib", "/var/tmp")  # noqa: S108 - mkdtemp makes a name nobody can guess


def choose_home(inside: Path, account: Account) -> Path:
    """Return the folder for the cluster: `inside` the stack's, or elsewhere where it must be.

    A checkout under /root can't be entered by the user that Postgres runs as.
    """
    inside.mkdir(mode=0o711, exist_ok=True)
    inside.chmod(0o711)
    if account.can_enter(inside):
        return inside
    inside.rmdir()
    parent = next((path for path in _ELSEWHERE if os.access(path, os.W_OK)), None)
    home = Path(tempfile.mkdtemp(prefix="quotagate-postgres-", dir=parent))
    home.chmod(0o711)
    return home


def make_cluster(
    home: Path, account: Account, binaries: PostgresBinaries, superuser_password: str
) -> None:
    """Make the cluster unless it is there, in one step: a broken-off attempt leaves no half one.

    Raises:
        StackError: initdb failed, or the cluster is another major version's.

    """
    data = home / "data"
    if data.is_dir():
        made_by = (data / "PG_VERSION").read_text(encoding="ascii").strip()
        if made_by != str(binaries.major):
            raise StackError(
                f"the data in {home} was made by Postgres {made_by}, but {binaries.folder} is "
                f"{binaries.major}: name the old one, or begin anew with: make down"
            )
        return
    draft = home / "data.new"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    account.give(draft)
    password_file = home / "password"
    password_file.touch(mode=0o600)
    account.give(password_file)
    try:
        password_file.write_text(superuser_password, encoding="ascii")
        answer = account.run(
            [
                binaries.folder / "initdb",
                f"--pgdata={draft}",
                f"--username={SUPERUSER}",
                f"--pwfile={password_file}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--no-locale",
            ]
        )
    finally:
        password_file.unlink()
    if answer.returncode != 0:
        raise StackError(f"initdb failed: {answer.stderr.strip()[-1000:]}")
    draft.rename(data)


def forget_last_run(home: Path) -> None:
    """Remove the note of a server that was killed; only after making sure that none runs.

    After a reboot its process number may be another program's, and Postgres would not start.
    """
    (home / "data" / "postmaster.pid").unlink(missing_ok=True)


def command(home: Path, binaries: PostgresBinaries, port: int) -> list[str]:
    """Return how to start the server: TCP only, so that no socket path can be too long."""
    return [
        str(binaries.folder / "postgres"),
        "-D",
        str(home / "data"),
        *("-c", f"config_file={home / 'postgresql.conf'}"),
        *("-c", f"listen_addresses={HOST}"),
        *("-c", f"port={port}"),
        *("-c", "unix_socket_directories="),
    ]


async def make_owner(port: int, superuser_password: str, owner_password: str) -> None:
    """Make the role that owns the database, without a superuser's rights, and the database."""
    connection = await asyncpg.connect(
        host=HOST,
        port=port,
        user=SUPERUSER,
        password=superuser_password,
        database="postgres",
        ssl=False,
    )
    try:
        if not await connection.fetchval("SELECT true FROM pg_roles WHERE rolname = $1", OWNER):
            # The password is ours and alphanumeric; a role can't be made with parameters.
            await connection.execute(
                f"CREATE ROLE {OWNER} LOGIN CREATEROLE PASSWORD '{owner_password}'"
            )
        if not await connection.fetchval(
            "SELECT true FROM pg_database WHERE datname = $1", DATABASE
        ):
            await connection.execute(f"CREATE DATABASE {DATABASE} OWNER {OWNER}")
    finally:
        await connection.close()
