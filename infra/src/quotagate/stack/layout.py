"""Which programs a stack has, how each is started, and what its environment holds."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from quotagate.stack import timer_slack
from quotagate.stack.ports import HOST
from quotagate.stack.postgres import DATABASE, OWNER
from quotagate.stack.programs import Program, python_program
from quotagate.stack.state import State

SERVERS = ("nats", "valkey", "postgres")
_NATS_TIMER_SLACK_US = 1_000

# In the order in which they need one another.
MODULES: Mapping[str, str] = MappingProxyType(
    {
        "tier-cache": "tier_cache",
        "admission": "admission",
        "settlement": "settlement",
        "control-plane": "control_plane",
        "fake-provider": "fake_provider",
        "edge-proxy": "edge_proxy",
    }
)
SERVICES = tuple(MODULES)
SCALABLE = ("edge-proxy", "admission", "tier-cache", "settlement")

ON_THE_BUS = frozenset(MODULES) - {"fake-provider"}
WITH_VALKEY = frozenset({"admission", "tier-cache", "settlement"})
WITH_DATABASE = frozenset({"tier-cache", "settlement", "control-plane"})
WITH_PEPPER = frozenset({"edge-proxy", "control-plane"})

GRACE_S = 10

_SET_BY_US = frozenset(
    {
        "QUOTAGATE_HOST",
        "QUOTAGATE_PORT",
        "QUOTAGATE_GRACE_S",
        "QUOTAGATE_NATS_URL",
        "QUOTAGATE_NATS_MONITOR_URL",
        "QUOTAGATE_NATS_USER",
        "QUOTAGATE_NATS_PASSWORD",
        "QUOTAGATE_REDIS_URL",
        "QUOTAGATE_DATABASE_URL",
        "QUOTAGATE_KEY_PEPPER",
        "QUOTAGATE_ADMIN_TOKEN",
        "QUOTAGATE_DATA_DIR",
        "QUOTAGATE_FAKE_PROVIDER_URL",
        "QUOTAGATE_FAKE_PROVIDER_KEY",
    }
)


@dataclass(frozen=True, slots=True)
class Servers:
    """Addresses and passwords of the three servers.

    `nats_passwords` and `redis_urls` are by service, and `operator` may do everything;
    `database_urls` are by role.
    """

    nats_url: str
    nats_monitor_url: str
    nats_passwords: Mapping[str, str]
    redis_urls: Mapping[str, str]
    database_urls: Mapping[str, str]

    @property
    def redis_url(self) -> str:
        """The address with the user who may do everything."""
        return self.redis_urls["operator"]

    @property
    def database_url(self) -> str:
        """The address with the role that owns the database and runs migrations."""
        return self.database_urls[OWNER]


def servers(state: State) -> Servers:
    """Return the addresses of a stack's servers."""
    ports, credentials = state.ports, state.credentials
    return Servers(
        nats_url=f"nats://{HOST}:{ports['nats']}",
        nats_monitor_url=f"http://{HOST}:{ports['nats-monitor']}",
        nats_passwords=MappingProxyType(credentials.nats),
        redis_urls=MappingProxyType(
            {
                user: f"redis://{user}:{password}@{HOST}:{ports['valkey']}/0"
                for user, password in credentials.valkey.items()
            }
        ),
        database_urls=MappingProxyType(
            {
                role: f"postgresql://{role}:{password}@{HOST}:{ports['postgres']}/{DATABASE}"
                for role, password in credentials.database.items()
            }
        ),
    )


def database_role(service: str) -> str:
    """Return the Postgres role that a service logs in with."""
    return f"quotagate_{service.replace('-', '_')}"


def service_of(program: str) -> str:
    """Return the service that a program is a replica of: `admission` for `admission-2`."""
    head, _, tail = program.rpartition("-")
    return head if tail.isdecimal() and head in MODULES else program


def replicas(services: Iterable[str], counts: Mapping[str, int]) -> list[str]:
    """Return the program names: `admission`, then `admission-2` and so on."""
    return [
        service if number == 1 else f"{service}-{number}"
        for service in services
        for number in range(1, counts.get(service, 1) + 1)
    ]


def service_environment(program: str, state: State) -> dict[str, str]:
    """Return what one service's process reads; paths are relative to the stack's folder."""
    service = service_of(program)
    known = servers(state)
    environment = {
        "QUOTAGATE_HOST": HOST,
        "QUOTAGATE_PORT": str(state.ports[program]),
        "QUOTAGATE_GRACE_S": str(GRACE_S),
    }
    if service in ON_THE_BUS:
        environment |= {
            "QUOTAGATE_NATS_URL": known.nats_url,
            "QUOTAGATE_NATS_MONITOR_URL": known.nats_monitor_url,
            "QUOTAGATE_NATS_USER": service,
            "QUOTAGATE_NATS_PASSWORD": known.nats_passwords[service],
        }
    if service in WITH_VALKEY:
        environment["QUOTAGATE_REDIS_URL"] = known.redis_urls[service]
    if service in WITH_DATABASE:
        environment["QUOTAGATE_DATABASE_URL"] = known.database_urls[database_role(service)]
    if service in WITH_PEPPER:
        environment["QUOTAGATE_KEY_PEPPER"] = state.credentials.key_pepper
    if service == "control-plane":
        environment["QUOTAGATE_ADMIN_TOKEN"] = state.credentials.admin_token
    if service == "settlement":
        # Its batches would hold a core for milliseconds that a client waits for.
        environment["QUOTAGATE_NICENESS"] = "5"
    if service == "edge-proxy":
        # Shared by all edges, so that one takes over what another left when there are fewer.
        environment["QUOTAGATE_DATA_DIR"] = f"data/{service}"
        if "fake-provider" in state.ports:
            environment |= {
                "QUOTAGATE_FAKE_PROVIDER_URL": f"http://{HOST}:{state.ports['fake-provider']}",
                "QUOTAGATE_FAKE_PROVIDER_KEY": "fake",
            }
    return environment


def inherited_environment(
    environment: Mapping[str, str], routes_file: Path, *, ours: bool
) -> dict[str, str]:
    """Return what all programs inherit from the user's environment.

    With `ours`, his `QUOTAGATE_` variables reach the services, unless the stack sets them itself.
    What steers Postgres's client library is left out: it would lead to another server.
    """
    prefix = "QUOTAGATE_"
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith("PG")
        and (ours or not name.startswith(prefix))
        and name.removesuffix("_FILE") not in _SET_BY_US
    }
    files = {"QUOTAGATE_ROUTES_FILE": kept.get("QUOTAGATE_ROUTES_FILE", str(routes_file))}
    if "QUOTAGATE_POLICIES_FILE" in kept:
        files["QUOTAGATE_POLICIES_FILE"] = kept["QUOTAGATE_POLICIES_FILE"]
    # The services have a folder of their own.
    return kept | {name: str(Path(path).expanduser().absolute()) for name, path in files.items()}


def service_program(program: str, environment: Mapping[str, str]) -> Program:
    """Return how one service's process is started."""
    return python_program(program, MODULES[service_of(program)], environment, GRACE_S)


def nats_program(
    binary: Path, directory: Path, state: State, environment: Mapping[str, str]
) -> Program:
    """Return how the NATS server is started; `directory` holds its configuration and its data.

    Half of the cores for its threads, which otherwise wake each other on those that the services
    need; `GOMAXPROCS` of the user's environment says otherwise. And its runtime's watcher, which
    looks 20 microseconds after each message whether a thread is stuck, may look a millisecond
    after it: that was a quarter of the server's work.
    """
    threads = environment.get("GOMAXPROCS") or str(max(1, (os.cpu_count() or 1) // 2))
    return Program(
        "nats",
        (
            *timer_slack.before(_NATS_TIMER_SLACK_US),
            str(binary),
            *("--config", str(directory / "nats.conf")),
            *("--addr", HOST),
            *("--port", str(state.ports["nats"])),
            *("--http_port", str(state.ports["nats-monitor"])),
            *("--store_dir", str(directory / "data")),
        ),
        environment={"GOMAXPROCS": threads},
        server=True,
    )


def valkey_program(binary: Path, directory: Path, state: State) -> Program:
    """Return how the Valkey server is started."""
    return Program(
        "valkey",
        (
            str(binary),
            str(directory / "valkey.conf"),
            *("--bind", HOST),
            *("--port", str(state.ports["valkey"])),
            *("--dir", str(directory / "data")),
            *("--aclfile", str(directory / "users.acl")),
        ),
        server=True,
    )
