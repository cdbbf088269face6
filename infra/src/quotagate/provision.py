"""Writes the servers' configuration and everybody's passwords, a folder for each who reads them.

For containers: each folder is a volume of the one container that reads it. Secrets are made once;
what follows from them is written anew each time, so that a new release's permissions arrive.

    nats/       nats.conf, nats-users.conf
    valkey/     valkey.conf, users.acl, operator_password
    postgres/   postgresql.conf, superuser_password, owner_password
    operator/   what `quotagate migrate` and `quotagate demo` read, and state.json: all secrets
    <service>/  nats_password, and redis_url, database_url, key_pepper, admin_token as it needs them
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from quotagate.access import nats as nats_access
from quotagate.access import valkey as valkey_access
from quotagate.config_folder import config_folder
from quotagate.stack import layout, state
from quotagate.stack.postgres import DATABASE, OWNER, SUPERUSER
from quotagate.stack.state import Credentials, State

Files = dict[str, str]
"""Contents by name."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """`host:port` of the servers, as the services reach them."""

    valkey: str
    postgres: str


def provision(directory: Path, addresses: Addresses) -> None:
    """Write every folder below `directory`, whose folders may exist already.

    Raises:
        StackError: the state of an earlier time is damaged.

    """
    kept = directory / "operator"
    kept.mkdir(parents=True, exist_ok=True)
    known = state.load(kept)
    if known is None:
        known = State.new()
        state.save(kept, known)
    for folder, files in contents(known.credentials, addresses).items():
        (directory / folder).mkdir(exist_ok=True)
        for name, text in files.items():
            # Readable by all in there: each container has another user, and only its own folder.
            path = directory / folder / name
            state.write_private(path, text)
            path.chmod(0o444)


def contents(credentials: Credentials, addresses: Addresses) -> Mapping[str, Files]:
    """Return each folder's files."""
    return {
        "nats": {
            **_shipped("nats.conf"),
            "nats-users.conf": nats_access.configuration(credentials.nats),
        },
        "valkey": {
            **_shipped("valkey.conf"),
            "users.acl": valkey_access.configuration(credentials.valkey),
            "operator_password": credentials.valkey[valkey_access.OPERATOR],
        },
        "postgres": {
            **_shipped("postgresql.conf"),
            "superuser_password": credentials.database[SUPERUSER],
            "owner_password": credentials.database[OWNER],
        },
        "operator": _operator(credentials, addresses),
        **{
            service: _service(service, credentials, addresses)
            for service in sorted(layout.ON_THE_BUS)
        },
    }


def _shipped(*names: str) -> Files:
    return {name: (config_folder() / name).read_text(encoding="utf-8") for name in names}


def _operator(credentials: Credentials, addresses: Addresses) -> Files:
    passwords = {
        f"{service.replace('-', '_')}_database_password": credentials.database[
            layout.database_role(service)
        ]
        for service in layout.WITH_DATABASE
    }
    return passwords | {
        "nats_password": credentials.nats[nats_access.OPERATOR],
        "database_url": _database_url(OWNER, credentials, addresses),
        "redis_url": _redis_url(valkey_access.OPERATOR, credentials, addresses),
        "admin_token": credentials.admin_token,
    }


def _service(service: str, credentials: Credentials, addresses: Addresses) -> Files:
    files = {"nats_password": credentials.nats[service]}
    if service in layout.WITH_VALKEY:
        files["redis_url"] = _redis_url(service, credentials, addresses)
    if service in layout.WITH_DATABASE:
        role = layout.database_role(service)
        files["database_url"] = _database_url(role, credentials, addresses)
    if service in layout.WITH_PEPPER:
        files["key_pepper"] = credentials.key_pepper
    if service == "control-plane":
        files["admin_token"] = credentials.admin_token
    return files


def _redis_url(user: str, credentials: Credentials, addresses: Addresses) -> str:
    return f"redis://{user}:{credentials.valkey[user]}@{addresses.valkey}/0"


def _database_url(role: str, credentials: Credentials, addresses: Addresses) -> str:
    return f"postgresql://{role}:{credentials.database[role]}@{addresses.postgres}/{DATABASE}"
