"""The local stack: three servers, the services and a fake provider under one supervisor."""

import asyncio
import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kit.settings import NatsSettings, load
from quotagate.config_folder import config_folder
from quotagate.database_roles import SERVICE_ROLES
from quotagate.demo import DemoData, demo
from quotagate.migrate import migrate
from quotagate.stack import (
    layout,
    ports,
    postgres,
    preparation,
    processes,
    programs,
    readiness,
    state,
    supervisor,
    unprivileged,
)
from quotagate.stack.errors import BusyError
from quotagate.stack.known import KnownStack
from quotagate.stack.ports import PortPolicy
from quotagate.stack.preparation import PostgresPlace
from quotagate.stack.programs import Program
from quotagate.stack.state import State
from quotagate.streams import make_streams

DEMO_KEY = "demo.key"

_SERVERS_TIMEOUT_S = 60.0
_SERVICES_TIMEOUT_S = 60.0
_SHUTDOWN_S = 90.0
_SERVER_PORTS = ("supervisor", "nats", "nats-monitor", "valkey", "postgres")

Rewire = Callable[[str, Mapping[str, str]], Mapping[str, str]]
"""Given a program's name and the environment it would get, returns the one that it gets."""


def _as_it_is(_program: str, environment: Mapping[str, str]) -> Mapping[str, str]:
    return environment


class Stack(KnownStack):
    """One stack in one folder. Every call blocks: from async code use `asyncio.to_thread`."""

    def __init__(
        self,
        directory: Path,
        policy: PortPolicy = PortPolicy.DEFAULTS,
        environment: Mapping[str, str] | None = None,
        rewire: Rewire = _as_it_is,
    ) -> None:
        """Know the stack in a folder. `rewire` lets a test lead services elsewhere."""
        super().__init__(directory)
        self._rewire = rewire
        self._policy = policy
        self._environment = dict(os.environ if environment is None else environment)

    def service_environment(self, program: str) -> dict[str, str]:
        """Return the variables the stack would start this program with."""
        return dict(self._rewire(program, layout.service_environment(program, self.state)))

    # The whole stack

    def up(
        self,
        services: Sequence[str] = layout.SERVICES,
        counts: Mapping[str, int] | None = None,
    ) -> None:
        """Bring the stack to this state, whatever it is in now; returns when all are ready.

        Servers always run. `services` names the services that shall run, `counts` how many
        processes of each (1 where it says nothing). What runs as wanted isn't touched.

        Raises:
            StackError: something can't be had or doesn't become healthy; it is left to look at.
            MigrationError: the database could not be migrated.
            DemoError: the demo data could not be made.

        """
        preparation.make_folders(self.directory)
        with self._locked():
            names = layout.replicas(services, counts or {})
            running = self._recover()
            self._choose_ports(names, running)
            place = self._place_postgres()
            wanted = preparation.server_programs(
                self.directory, self.state, place, self._environment
            )
            wanted += [
                layout.service_program(name, self.service_environment(name)) for name in names
            ]
            self._supervise(wanted, place)
            self._start_servers(place)
            self._migrate()
            self._start_services(names)
            if "control-plane" in services:
                self.demo()

    def demo(self) -> DemoData:
        """Make the demo team unless it is there, and return its key; needs the control plane.

        Raises:
            DemoError: the control plane refused or doesn't answer.

        """
        return demo(
            self.url("control-plane"), self.state.credentials.admin_token, self.directory / DEMO_KEY
        )

    def stop_all(self) -> None:
        """Stop every process and keep the data; fine when nothing runs."""
        if self._state is None:
            return
        with self._locked():
            self._end_processes()

    def down(self) -> None:
        """Stop every process and remove everything the stack made; fine when there is nothing."""
        if not self.directory.exists():
            return
        with self._locked():
            if self._state is not None:
                self._end_processes()
                if self._state.postgres_home is not None:
                    shutil.rmtree(self._state.postgres_home, ignore_errors=True)
            shutil.rmtree(self.directory)
        self._state = None

    # How it is done

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.directory / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BusyError from None
            self._state = state.load(self.directory)
            yield

    def _remember(self, **changes: object) -> None:
        self._state = replace(self.state, **changes)  # type: ignore[arg-type] # fields by name
        state.save(self.directory, self._state)

    def _recover(self) -> frozenset[str]:
        """Return what runs; without a supervisor nothing does, once what it left is ended."""
        if self._state is None:
            self._state = State.new()
            state.save(self.directory, self._state)
        if self.is_running:
            running = {status.name for status in self.status() if status.is_wanted}
            return frozenset(running | {"supervisor", "nats-monitor"})
        processes.end_all(self.state.mark)
        if self.state.postgres_home is not None:
            postgres.forget_last_run(Path(self.state.postgres_home))
        return frozenset()

    def _choose_ports(self, names: Sequence[str], running: frozenset[str]) -> None:
        chosen = ports.choose(
            [*_SERVER_PORTS, *names],
            self._policy,
            self.state.ports,
            self._environment,
            running,
        )
        self._remember(ports=self.state.ports | chosen)

    def _place_postgres(self) -> PostgresPlace:
        if self.state.postgres_home is None or not Path(self.state.postgres_home).is_dir():
            inside = self.directory / "postgres"
            home = postgres.choose_home(inside, unprivileged.for_postgres())
            self._remember(postgres_home=str(home))
        home = Path(str(self.state.postgres_home))
        return preparation.find_postgres(home, self._environment)

    def _supervise(self, wanted: Sequence[Program], place: PostgresPlace) -> None:
        """Have the supervisor know the programs, itself started if need be."""
        text = programs.configuration(
            wanted,
            self.state.ports["supervisor"],
            self.state.credentials.supervisor,
            root=place.account.switch,
        )
        state.write_private(self.directory / supervisor.CONFIGURATION, text)
        if self._supervisor.answers():
            self._supervisor.reload()
            return
        inherited = layout.inherited_environment(
            self._environment,
            config_folder() / "routes.toml",
            ours=self._policy is PortPolicy.DEFAULTS,
        )
        needed = programs.supervisor_environment(wanted, self.state.mark)
        supervisor.launch(self.directory, inherited | needed, self._supervisor)

    def _start_servers(self, place: PostgresPlace) -> None:
        self._supervisor.start("nats")
        self._supervisor.start("valkey")
        # Making the cluster takes longest; meanwhile the other two come up.
        passwords = self.state.credentials.database
        postgres.make_cluster(
            place.home, place.account, place.binaries, passwords[postgres.SUPERUSER]
        )
        self._supervisor.start("postgres")
        self._wait(layout.SERVERS, _SERVERS_TIMEOUT_S)

    def _migrate(self) -> None:
        """Bring database, roles and streams to this version."""
        passwords = self.state.credentials.database
        known = self.servers
        asyncio.run(
            postgres.make_owner(
                self.state.ports["postgres"],
                passwords[postgres.SUPERUSER],
                passwords[postgres.OWNER],
            )
        )
        as_operator = {
            "QUOTAGATE_PORT": "0",
            "QUOTAGATE_NATS_URL": known.nats_url,
            "QUOTAGATE_NATS_USER": "operator",
            "QUOTAGATE_NATS_PASSWORD": known.nats_passwords["operator"],
        }
        roles = {role: passwords[role] for role in SERVICE_ROLES}
        migrate(known.database_url, roles)
        asyncio.run(make_streams(load(NatsSettings, as_operator)))

    def _start_services(self, names: Sequence[str]) -> None:
        for name in names:
            self._supervisor.start(name)
        self._wait(names, _SERVICES_TIMEOUT_S)

    def _wait(self, names: Sequence[str], timeout_s: float) -> None:
        probes = {name: self._probe(name) for name in names}
        readiness.wait_until_ready(probes, self._supervisor, self.directory / "logs", timeout_s)

    def _end_processes(self) -> None:
        if self.is_running:
            processes.thaw(self.state.mark)
            names = [status.name for status in self.status()]
            self._supervisor.stop_together([name for name in names if name not in layout.SERVERS])
            self._supervisor.stop_together(layout.SERVERS)
            self._supervisor.shut_down()
            processes.wait_until_gone(self.state.mark, _SHUTDOWN_S)
        processes.end_all(self.state.mark)
