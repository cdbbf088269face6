"""A stack as it is: where things are, how they do, and what can be done to a single program."""

from pathlib import Path

from quotagate.stack import layout, ports, readiness, state
from quotagate.stack.errors import NotRunningError, StackError
from quotagate.stack.readiness import Probe
from quotagate.stack.state import State
from quotagate.stack.supervisor import ProcessStatus, Supervisor

_READY_TIMEOUT_S = 60.0


class KnownStack:
    """What the folder of a stack tells, and its programs one by one.

    Programs are called `nats`, `valkey`, `postgres`, and like the services; further replicas
    `admission-2` and so on. A service's name alone means all its replicas.
    """

    def __init__(self, directory: Path) -> None:
        """Know the stack in a folder, which need not exist yet."""
        self.directory = directory.absolute()
        self._state: State | None = state.load(self.directory)

    # What there is to know

    @property
    def state(self) -> State:
        """Ports and secrets.

        Raises:
            NotRunningError: the stack was never started.

        """
        if self._state is None:
            raise NotRunningError
        return self._state

    @property
    def servers(self) -> layout.Servers:
        """Addresses and passwords of NATS, Valkey and Postgres."""
        return layout.servers(self.state)

    def url(self, program: str) -> str:
        """Return the HTTP address of a service, such as `edge-proxy` or `edge-proxy-2`."""
        return f"http://{ports.HOST}:{self.state.ports[program]}"

    @property
    def is_running(self) -> bool:
        """Whether the supervisor answers."""
        return self._state is not None and bool(self._state.ports) and self._supervisor.answers()

    def status(self) -> list[ProcessStatus]:
        """Return every program's state."""
        return self._supervisor.status()

    def programs_of(self, service: str) -> list[str]:
        """Return the programs that are a service's replicas, as they are set up now."""
        return sorted(
            status.name for status in self.status() if layout.service_of(status.name) == service
        )

    def problem(self, program: str) -> str | None:
        """Ask a program once whether it is ready; None: it is."""
        return self._probe(program)()

    def log_file(self, program: str) -> Path:
        """Return where a program's output goes."""
        return self.directory / "logs" / f"{program}.log"

    @property
    def _supervisor(self) -> Supervisor:
        if not self.state.ports:
            raise NotRunningError
        return Supervisor(self.state.ports["supervisor"], self.state.credentials.supervisor)

    # One program

    def start(self, name: str) -> None:
        """Start a program that was stopped; returns when it is ready."""
        for program in self._programs(name):
            self._supervisor.start(program)
        self.wait_ready(name)

    def stop(self, name: str) -> None:
        """Stop a program; it stays stopped. Returns when it has left."""
        for program in self._programs(name):
            self._supervisor.stop(program)

    def restart(self, name: str) -> None:
        """Stop a program and start it again; returns when it is ready."""
        self.stop(name)
        self.start(name)

    def signal(self, name: str, signal_name: str) -> None:
        """Send a signal, such as `STOP`, `CONT` or `KILL`; who leaves is started again."""
        for program in self._programs(name):
            self._supervisor.signal(program, signal_name)

    def kill(self, name: str) -> None:
        """End a program with SIGKILL; returns when it is gone, and the supervisor restarts it."""
        pids = {status.name: status.pid for status in self.status()}
        for program in self._programs(name):
            self._supervisor.signal(program, "KILL")
            self._supervisor.wait_until_left(program, pids[program])

    def wait_ready(self, name: str, timeout_s: float = _READY_TIMEOUT_S) -> None:
        """Return when a program is ready.

        Raises:
            UnhealthyError: it took longer, or left for good.

        """
        probes = {program: self._probe(program) for program in self._programs(name)}
        readiness.wait_until_ready(probes, self._supervisor, self.directory / "logs", timeout_s)

    def _programs(self, name: str) -> list[str]:
        """Return the programs that a name means."""
        known = [status.name for status in self.status()]
        found = [program for program in known if name in {program, layout.service_of(program)}]
        if not found:
            raise StackError(f"no program is called {name}; there are: {', '.join(known)}")
        return found

    def _probe(self, name: str) -> Probe:
        if name == "nats":
            return readiness.http_probe(self.state.ports["nats-monitor"], "/healthz")
        if name == "valkey":
            password = self.state.credentials.valkey["operator"]
            return readiness.valkey_probe(self.state.ports["valkey"], "operator", password)
        if name == "postgres":
            return readiness.postgres_probe(self.state.ports["postgres"])
        return readiness.http_probe(self.state.ports[name], "/health/ready")
