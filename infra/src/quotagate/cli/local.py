"""`up`, `stop`, `down`, `ps`, `logs`: the stack on this machine."""

import argparse
import os
import sys
import time
from pathlib import Path

from quotagate.cli import welcome
from quotagate.cli.following import follow
from quotagate.stack import Stack
from quotagate.stack.errors import NotRunningError, StackError
from quotagate.stack.layout import SCALABLE, SERVICES, service_of
from quotagate.stack.readiness import last_lines

DIRECTORY_VARIABLE = "QUOTAGATE_STACK_DIR"

_MOST_REPLICAS = 32
_LOG_LINES = 20


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add this module's commands."""
    up = commands.add_parser("up", help="start everything, wait until it is healthy")
    up.add_argument(
        "--scale",
        metavar="SERVICE=COUNT",
        type=_scale,
        action="append",
        default=[],
        help=f"processes of a service ({', '.join(SCALABLE)})",
    )
    up.set_defaults(run=_up)
    stop = commands.add_parser("stop", help="stop everything, keep the data")
    stop.set_defaults(run=_stop)
    down = commands.add_parser("down", help="stop everything, remove everything it made")
    down.set_defaults(run=_down)
    ps = commands.add_parser("ps", help="show the processes")
    ps.set_defaults(run=_ps)
    logs = commands.add_parser("logs", help="show the last lines of the logs")
    logs.add_argument("names", nargs="*", metavar="NAME", help="a program, as ps calls it")
    logs.add_argument("-f", "--follow", action="store_true", help="go on until interrupted")
    logs.add_argument("-n", "--lines", type=int, default=_LOG_LINES, help="lines of each")
    logs.set_defaults(run=_logs)


def the_stack() -> Stack:
    """Return the stack of the folder that the variable names, or of `.quotagate` here."""
    return Stack(Path(os.environ.get(DIRECTORY_VARIABLE) or ".quotagate"))


def _scale(text: str) -> tuple[str, int]:
    service, _, count = text.partition("=")
    if service not in SCALABLE:
        raise argparse.ArgumentTypeError(f"can't scale {service!r}, only {', '.join(SCALABLE)}")
    if not count.isdecimal() or not 1 <= int(count) <= _MOST_REPLICAS:
        raise argparse.ArgumentTypeError(f"{service}: 1 to {_MOST_REPLICAS} processes")
    return service, int(count)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _up(options: argparse.Namespace) -> None:
    stack = the_stack()
    started_s = time.monotonic()
    if stack.is_running:
        _say("Already up; bringing it to what was asked for ...")
    else:
        _say("Starting NATS, Valkey, Postgres, then the services ...")
    stack.up(counts=dict(options.scale))
    _say(f"Everything is healthy ({time.monotonic() - started_s:.1f} s).\n")
    _say(welcome.text(stack))


def _stop(_options: argparse.Namespace) -> None:
    the_stack().stop_all()
    _say("Everything is stopped. The data is kept: make up starts again, make down removes it.")


def _down(_options: argparse.Namespace) -> None:
    the_stack().down()
    _say("Everything is stopped and removed.")


def _ps(_options: argparse.Namespace) -> None:
    stack = the_stack()
    if not stack.is_running:
        raise NotRunningError
    row = "{:<18}{:<10}{:>8}{:>10}{:>7}  {}"
    _say(row.format("NAME", "STATE", "PID", "UPTIME", "PORT", "HEALTH").rstrip())
    unhealthy = []
    for status in sorted(stack.status(), key=lambda each: _order(each.name)):
        problem = stack.problem(status.name) if status.is_wanted else "not running"
        if problem:
            unhealthy.append(status.name)
        _say(
            row.format(
                status.name,
                status.state.lower(),
                status.pid or "-",
                _duration(status.uptime_s),
                stack.state.ports[status.name],
                problem or "healthy",
            )
        )
    if unhealthy:
        raise StackError(f"not healthy: {', '.join(unhealthy)}")


def _order(name: str) -> tuple[int, str]:
    service = service_of(name)
    return (SERVICES.index(service) if service in SERVICES else -1, name)


def _duration(seconds: int) -> str:
    minutes, rest_s = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m{rest_s:02}s" if hours else f"{minutes}m{rest_s:02}s"


def _logs(options: argparse.Namespace) -> None:
    stack = the_stack()
    folder = stack.directory / "logs"
    known = {path.stem: path for path in sorted(folder.glob("*.log"))}
    if not known:
        raise NotRunningError
    names = options.names or list(known)
    for name in names:
        if name not in known:
            raise StackError(f"no log of {name}; there are: {', '.join(known)}")
    width = max(len(name) for name in names)
    for name in names:
        for line in last_lines(known[name], options.lines):
            _say(f"{name:<{width}} | {line}")
    if options.follow:
        for name, line in follow({name: known[name] for name in names}):
            _say(f"{name:<{width}} | {line}")
