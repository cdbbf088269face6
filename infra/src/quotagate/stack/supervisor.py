"""Talks to the supervisor: starts it, asks it, and has it start, stop and signal programs."""

import contextlib
import http.client
import subprocess
import sys
import time
import xmlrpc.client
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quotagate.stack.errors import NotRunningError, StackError
from quotagate.stack.ports import HOST
from quotagate.stack.programs import SUPERVISOR_USER

CONFIGURATION = "supervisor.conf"

_START_TIMEOUT_S = 10.0
_STOP_TIMEOUT_S = 60.0
_ALREADY = frozenset({60, 70})  # ALREADY_STARTED, NOT_RUNNING: it is as it should be
_SPAWN_ERROR = 50
_RUNNING_STATES = frozenset({"STARTING", "RUNNING", "BACKOFF"})


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """What the supervisor says of one program."""

    name: str
    state: str
    """STOPPED, STARTING, RUNNING, BACKOFF, STOPPING, EXITED, FATAL or UNKNOWN."""
    pid: int
    """0: not running."""
    uptime_s: int
    detail: str

    @property
    def is_wanted(self) -> bool:
        """Whether the supervisor keeps it running, or tries to."""
        return self.state in _RUNNING_STATES


class _Transport(xmlrpc.client.Transport):
    """A transport that gives up, so that a supervisor that was stopped can't hold us."""

    def make_connection(self, host: Any) -> http.client.HTTPConnection:  # noqa: ANN401 - as in the base class
        connection = super().make_connection(host)
        connection.timeout = 60
        return connection


class Supervisor:
    """One running supervisor, reached on its port with its password."""

    def __init__(self, port: int, password: str) -> None:
        self._url = f"http://{SUPERVISOR_USER}:{password}@{HOST}:{port}/RPC2"

    @contextlib.contextmanager
    def _rpc(self) -> Iterator[Any]:
        try:
            with xmlrpc.client.ServerProxy(self._url, transport=_Transport()) as proxy:
                yield proxy.supervisor
        except (OSError, http.client.HTTPException) as error:
            raise NotRunningError(f"the supervisor doesn't answer: {error}") from error
        except xmlrpc.client.ProtocolError as error:
            raise NotRunningError(f"another program answers: {error.errmsg}") from error
        except xmlrpc.client.Fault as fault:
            raise StackError(f"supervisor: {fault.faultString}") from fault

    def answers(self) -> bool:
        """Tell whether the supervisor runs and is ours."""
        try:
            with self._rpc() as rpc:
                return bool(rpc.getState()["statename"] == "RUNNING")
        except NotRunningError:
            return False

    def status(self) -> list[ProcessStatus]:
        """Return the state of each program."""
        with self._rpc() as rpc:
            answers = rpc.getAllProcessInfo()
        return [
            ProcessStatus(
                name=answer["name"],
                state=answer["statename"],
                pid=answer["pid"],
                uptime_s=max(0, answer["now"] - answer["start"]) if answer["pid"] else 0,
                detail=answer["spawnerr"] or answer["description"],
            )
            for answer in answers
        ]

    def start(self, name: str) -> None:
        """Start a program unless it runs; returns before it is ready.

        One that left at once is tried again by the supervisor like one that left a moment
        later: who waits for it learns why.
        """
        with self._rpc() as rpc, _unless(_ALREADY | {_SPAWN_ERROR}):
            wait = False
            rpc.startProcess(name, wait)

    def stop(self, name: str, *, wait: bool = True) -> None:
        """Stop a program unless it is stopped; with `wait`, returns when it has left."""
        with self._rpc() as rpc, _unless(_ALREADY):
            rpc.stopProcess(name, wait)

    def signal(self, name: str, signal_name: str) -> None:
        """Send a signal such as `KILL` or `STOP` to a program; the supervisor starts it again."""
        with self._rpc() as rpc:
            rpc.signalProcess(name, signal_name)

    def wait_until_left(self, name: str, pid: int) -> None:
        """Return when the supervisor has seen that this process of a program has left.

        Raises:
            StackError: it is there still.

        """
        deadline_s = time.monotonic() + _START_TIMEOUT_S
        while any(status.name == name and status.pid == pid for status in self.status()):
            if time.monotonic() > deadline_s:
                raise StackError(f"{name} (process {pid}) doesn't leave")
            time.sleep(0.02)

    def reload(self) -> None:
        """Take over the configuration file: what changed or vanished is stopped, new ones added."""
        with self._rpc() as rpc:
            added, changed, removed = rpc.reloadConfig()[0]
        for name in [*changed, *removed]:
            self.stop(name)
            with self._rpc() as rpc:
                rpc.removeProcessGroup(name)
        for name in [*added, *changed]:
            with self._rpc() as rpc:
                rpc.addProcessGroup(name)

    def stop_together(self, names: Sequence[str]) -> None:
        """Stop programs at the same time; returns when all have left.

        Raises:
            StackError: one is there still, long after the supervisor should have killed it.

        """
        for name in names:
            self.stop(name, wait=False)
        deadline_s = time.monotonic() + _STOP_TIMEOUT_S
        while left := [each.name for each in self.status() if each.name in names and each.pid]:
            if time.monotonic() > deadline_s:
                raise StackError(f"these don't leave: {', '.join(left)}")
            time.sleep(0.03)

    def shut_down(self) -> None:
        """Tell the supervisor to leave, and before to stop what runs still."""
        with self._rpc() as rpc:
            rpc.shutdown()


@contextlib.contextmanager
def _unless(codes: Set[int]) -> Iterator[None]:
    try:
        yield
    except xmlrpc.client.Fault as fault:
        if fault.faultCode not in codes:
            raise


def launch(directory: Path, environment: Mapping[str, str], supervisor: Supervisor) -> None:
    """Start the supervisor with the configuration in `directory`; returns when it answers.

    `environment` is all that it and its programs inherit.

    Raises:
        StackError: it doesn't come up; the text says what it complained about.

    """
    answer = subprocess.run(  # noqa: S603 - our own interpreter and arguments
        [sys.executable, "-m", "supervisor.supervisord", "-c", CONFIGURATION],
        cwd=directory,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise StackError(f"the supervisor didn't start: {answer.stderr.strip()[-1000:]}")
    deadline_s = time.monotonic() + _START_TIMEOUT_S
    while not supervisor.answers():
        if time.monotonic() > deadline_s:
            log = directory / "logs" / "supervisor.log"
            tail = log.read_text(errors="replace")[-1000:] if log.exists() else ""
            raise StackError(f"the supervisor doesn't answer: {tail}")
        time.sleep(0.02)
