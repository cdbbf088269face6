"""What the supervisor runs, and its configuration.

Values that come from the machine (paths) never stand in that file: its format has comments,
expansions and three ways to quote. They reach it through the supervisor's own environment, and
everything else is a path relative to the stack's folder, where the supervisor lives.
"""

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from quotagate.stack.errors import StackError
from quotagate.stack.ports import HOST

MARK_VARIABLE = "QUOTAGATE_STACK_MARK"
SUPERVISOR_USER = "quotagate"

_SERVER_PRIORITY = 10
_SERVICE_PRIORITY = 20


@dataclass(frozen=True, slots=True)
class Program:
    """One process that the supervisor keeps running, called like `admission` or `admission-2`."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    """Whom it runs as; None: as the supervisor."""
    stop_signal: str = "TERM"
    stop_wait_s: int = 15
    server: bool = False
    """Servers start first and stop last. The others are our own processes, run by our Python."""

    @property
    def command_variable(self) -> str:
        """The variable of the supervisor's environment that holds the command."""
        return f"STACK_COMMAND_{self.name.upper().replace('-', '_')}"

    @property
    def log_file(self) -> str:
        """Where its output goes, relative to the stack's folder."""
        return f"logs/{self.name}.log"


def python_program(name: str, module: str, environment: Mapping[str, str], grace_s: int) -> Program:
    """Return the program of one of our own processes."""
    return Program(
        name,
        # -P: what lies in the stack's folder is not to be imported.
        (sys.executable, "-P", "-m", module),
        environment=environment,
        stop_wait_s=grace_s + 5,
    )


def supervisor_environment(programs: Sequence[Program], mark: str) -> dict[str, str]:
    """Return what must be in the supervisor's environment for :func:`configuration`."""
    return {
        MARK_VARIABLE: mark,
        "STACK_PYTHON": shlex.quote(sys.executable),
        **{program.command_variable: shlex.join(program.command) for program in programs},
    }


def configuration(programs: Sequence[Program], port: int, password: str, *, root: bool) -> str:
    """Return the supervisor's configuration file."""
    lines = [
        "[supervisord]",
        "logfile=logs/supervisor.log",
        "logfile_maxbytes=5MB",
        "logfile_backups=1",
        "pidfile=supervisor.pid",
        *(["user=root"] if root else []),
        "",
        "[rpcinterface:supervisor]",
        "supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface",
        "",
        "[inet_http_server]",
        f"port={HOST}:{port}",
        f"username={SUPERVISOR_USER}",
        f"password={password}",
    ]
    for program in programs:
        lines += ["", *_section(program)]
    return "\n".join(lines) + "\n"


def _section(program: Program) -> list[str]:
    return [
        f"[program:{program.name}]",
        f"command={_command(program)}",
        f"priority={_SERVER_PRIORITY if program.server else _SERVICE_PRIORITY}",
        # The stack starts each when what it needs is there.
        "autostart=false",
        "autorestart=true",
        "startsecs=1",
        "startretries=20",
        f"stopsignal={program.stop_signal}",
        f"stopwaitsecs={program.stop_wait_s}",
        "redirect_stderr=true",
        f"stdout_logfile={program.log_file}",
        "stdout_logfile_maxbytes=10MB",
        "stdout_logfile_backups=1",
        *([f"user={program.user}"] if program.user else []),
        *([f"environment={_environment(program)}"] if program.environment else []),
    ]


def _command(program: Program) -> str:
    if not program.server:
        # Services may be added later, when the supervisor's environment stands.
        return f"%(ENV_STACK_PYTHON)s {shlex.join(program.command[1:])}"
    return f"%(ENV_{program.command_variable})s"


def _environment(program: Program) -> str:
    for name, value in program.environment.items():
        if any(char in value for char in "\"'\\%;#\n\r"):
            raise StackError(f"{name}: this value can't be passed on: {value!r}")
    return ",".join(f'{name}="{value}"' for name, value in program.environment.items())
