"""Writes what the servers need before they start: configuration, users, folders, the cluster."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from quotagate.access import nats as nats_access
from quotagate.access import valkey as valkey_access
from quotagate.config_folder import config_folder
from quotagate.stack import binaries, layout, postgres, postgres_binaries, unprivileged
from quotagate.stack.postgres_binaries import PostgresBinaries
from quotagate.stack.programs import Program
from quotagate.stack.state import State, write_private
from quotagate.stack.unprivileged import Account


@dataclass(frozen=True, slots=True)
class PostgresPlace:
    """Where the cluster lies, who runs it, and with which programs."""

    home: Path
    account: Account
    binaries: PostgresBinaries


def make_folders(directory: Path) -> None:
    """Make the stack's folder, which others may pass through but not list, and those in it."""
    directory.mkdir(mode=0o711, parents=True, exist_ok=True)
    directory.chmod(0o711)
    for name in ("logs", "data", "nats", "nats/data", "valkey", "valkey/data"):
        (directory / name).mkdir(mode=0o700, exist_ok=True)


def find_postgres(home: Path, environment: Mapping[str, str]) -> PostgresPlace:
    """Choose the Postgres to run, and have its configuration and the packages' copy in `home`."""
    account = unprivileged.for_postgres()
    found = postgres_binaries.find(account, home, environment)
    configuration = home / "postgresql.conf"
    shutil.copyfile(config_folder() / "postgresql.conf", configuration)
    configuration.chmod(0o644)
    return PostgresPlace(home, account, found)


def server_programs(
    directory: Path, state: State, place: PostgresPlace, environment: Mapping[str, str]
) -> list[Program]:
    """Write the servers' configuration and return how they are started."""
    nats, valkey = directory / "nats", directory / "valkey"
    shutil.copyfile(config_folder() / "nats.conf", nats / "nats.conf")
    users = nats_access.configuration(state.credentials.nats)
    write_private(nats / "nats-users.conf", users)
    shutil.copyfile(config_folder() / "valkey.conf", valkey / "valkey.conf")
    write_private(valkey / "users.acl", valkey_access.configuration(state.credentials.valkey))
    return [
        layout.nats_program(binaries.nats_server(environment), nats, state, environment),
        layout.valkey_program(binaries.valkey_server(environment), valkey, state),
        Program(
            "postgres",
            tuple(postgres.command(place.home, place.binaries, state.ports["postgres"])),
            user=place.account.name if place.account.switch else None,
            # Fast shutdown: open transactions are rolled back instead of waited for.
            stop_signal="INT",
            stop_wait_s=30,
            server=True,
        ),
    ]
