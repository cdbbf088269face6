"""`provision`, `migrate` and `demo`: what a deployment runs once, around its services' start."""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr

from contracts.inference import INFERENCE_RECORDS
from kit.settings import NatsSettings, ServiceSettings, load
from quotagate.cli import welcome
from quotagate.demo import demo
from quotagate.migrate import migrate
from quotagate.provision import Addresses, provision
from quotagate.stack.stack import DEMO_KEY
from quotagate.streams import make_streams


class MigrateSettings(NatsSettings):
    """Where the stores are, whom to connect as, and the passwords that the roles shall have."""

    port: int = Field(0, description="Not used.")
    database_url: SecretStr = Field(
        description="postgresql:// address with the role that owns the database."
    )
    tier_cache_database_password: SecretStr = Field(description="For quotagate_tier_cache.")
    settlement_database_password: SecretStr = Field(description="For quotagate_settlement.")
    control_plane_database_password: SecretStr = Field(description="For quotagate_control_plane.")
    stream_replicas: Annotated[int, Field(ge=1, le=5)] = Field(
        1, description="Copies of each stream: 1 alone, 3 in a cluster."
    )
    record_stream_max_bytes: int = Field(
        INFERENCE_RECORDS.max_bytes,
        ge=64 * 1024**2,
        description="Bytes that the stream of inference records may hold: the replay window's"
        " records and those that wait while settlement is down. Beyond them calls are refused. The"
        " NATS server must have as much (max_file_store).",
    )


class DemoSettings(ServiceSettings):
    """Where the control plane is, and where the edge will be found."""

    port: int = Field(0, description="Not used.")
    control_plane_url: str = Field("http://127.0.0.1:8081", description="The control plane.")
    edge_url: str = Field("http://127.0.0.1:8080", description="The edge, as a client sees it.")
    admin_token: SecretStr = Field(description="The control plane's admin token.")
    data_dir: Path = Field(description="Folder that keeps the demo key.")


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add this module's commands."""
    command = commands.add_parser(
        "provision", help="write the servers' configuration and everybody's passwords"
    )
    command.add_argument("directory", type=Path, help="a folder for each reader comes into it")
    command.add_argument("--valkey", default="valkey:6379", metavar="HOST:PORT")
    command.add_argument("--postgres", default="postgres:5432", metavar="HOST:PORT")
    command.set_defaults(run=_provision)
    command = commands.add_parser(
        "migrate", help="bring database, roles and streams to this version"
    )
    command.set_defaults(run=_migrate)
    command = commands.add_parser("demo", help="make a demo team and print its key")
    command.set_defaults(run=_demo)


def _provision(options: argparse.Namespace) -> None:
    provision(options.directory, Addresses(options.valkey, options.postgres))
    sys.stdout.write(f"Configuration and passwords are in {options.directory}.\n")


def _migrate(_options: argparse.Namespace) -> None:
    settings = load(MigrateSettings)
    migrate(
        settings.database_url.get_secret_value(),
        {
            f"quotagate_{service}": getattr(
                settings, f"{service}_database_password"
            ).get_secret_value()
            for service in ("tier_cache", "settlement", "control_plane")
        },
    )
    asyncio.run(make_streams(settings, settings.stream_replicas, settings.record_stream_max_bytes))
    sys.stdout.write("The database, its roles and the streams are at this version.\n")


def _demo(_options: argparse.Namespace) -> None:
    settings = load(DemoSettings)
    made = demo(
        settings.control_plane_url,
        settings.admin_token.get_secret_value(),
        settings.data_dir / DEMO_KEY,
    )
    sys.stdout.write(f"API key  {made.key}\n\n")
    sys.stdout.write(welcome.first_request(settings.edge_url, made) + "\n")
