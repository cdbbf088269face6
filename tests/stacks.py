"""Real servers and services on free ports, in a folder of this run, removed when they are done."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from quotagate.stack import PortPolicy, Stack
from quotagate.stack.errors import BusyError

_STACKS = Path(__file__).parents[1] / "build" / "test-stacks"

# A busy machine must not turn an answer into a time-out; those who test time-outs set their own.
_PATIENCE = {
    "QUOTAGATE_PREFLIGHT_TIMEOUT_MS": "3000",
    "QUOTAGATE_POSTFLIGHT_TIMEOUT_MS": "3000",
    "QUOTAGATE_KEY_LOOKUP_TIMEOUT_MS": "3000",
    "QUOTAGATE_REDIS_TIMEOUT_MS": "2000",
}


@contextlib.contextmanager
def stack_of_servers(name: str) -> Iterator[Stack]:
    """Start NATS, Valkey and a migrated Postgres without any service; `name` is the stack's own."""
    with new_stack(name) as stack:
        stack.up(services=())
        yield stack


@contextlib.contextmanager
def new_stack(name: str, **settings: str) -> Iterator[Stack]:
    """Make a stack in which nothing runs yet; take down whatever runs in it in the end.

    `settings` are variables for its services.
    """
    _remove_leftovers()

    def rewire(_program: str, environment: Mapping[str, str]) -> Mapping[str, str]:
        return {**environment, **_PATIENCE, **settings}

    # Variables of whoever runs the tests don't reach a stack on free ports; these must.
    stack = Stack(_STACKS / f"{os.getpid()}-{name}", PortPolicy.FREE, rewire=rewire)
    try:
        yield stack
    finally:
        stack.down()


def _remove_leftovers() -> None:
    """Take down the stacks of runs that were killed before they could."""
    for folder in _STACKS.glob("*-*"):
        pid = folder.name.partition("-")[0]
        if pid.isdecimal() and not _process_lives(int(pid)):
            # Another run may be at it.
            with contextlib.suppress(BusyError):
                Stack(folder, PortPolicy.FREE).down()


def _process_lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
