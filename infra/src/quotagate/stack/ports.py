"""Which TCP port on 127.0.0.1 each program of the stack listens on.

A port that a variable names is taken or refused; a default that somebody else holds gives way to
the next free one, and the choice is remembered with the stack.
"""

import errno
import itertools
import random
import socket
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from types import MappingProxyType

from quotagate.stack.errors import PortTakenError, StackError

HOST = "127.0.0.1"

DEFAULTS: Mapping[str, int] = MappingProxyType(
    {
        "nats": 14222,
        "nats-monitor": 18222,
        "valkey": 16379,
        "postgres": 15432,
        "edge-proxy": 8080,
        "control-plane": 8081,
        "admission": 18082,
        "tier-cache": 18083,
        "settlement": 18084,
        "fake-provider": 18085,
        "supervisor": 18086,
    }
)

_LAST_PORT = 65535
# Below every system's range of ephemeral ports: a client's outgoing connection can't take the port
# of a server that a test has stopped for a moment.
_FREE_RANGE = range(20_000, 32_000)
_STRETCH = 500


class PortPolicy(Enum):
    """DEFAULTS: the documented ports or the next free ones. FREE: any free ports, for tests."""

    DEFAULTS = "defaults"
    FREE = "free"


def variable(name: str) -> str:
    """Return the variable that sets the port called `name`."""
    return f"QUOTAGATE_{name.upper().replace('-', '_')}_PORT"


def is_free(port: int) -> bool:
    """Tell whether a server could listen on the port now.

    Raises:
        StackError: the system refuses for another reason than that it is in use.

    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the servers do, so that connections lingering from the last run don't count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno in {errno.EADDRINUSE, errno.EACCES}:
                return False
            raise StackError(f"port {port}: {error.strerror}") from error
    return True


def choose(
    names: Iterable[str],
    policy: PortPolicy,
    remembered: Mapping[str, int],
    environment: Mapping[str, str],
    kept: frozenset[str] = frozenset(),
) -> dict[str, int]:
    """Return a port for each name; replicas are called like `edge-proxy-2`.

    `remembered` holds the last run's choice. Names in `kept` run already: their remembered port
    stands without a look at whether it is free.

    Raises:
        PortTakenError: a port set by a variable is in use or named twice.
        StackError: a variable holds no port number, or another than the one in use.

    """
    chosen = {name: remembered[name] for name in kept if name in remembered}
    if policy is PortPolicy.DEFAULTS:
        for name, port in chosen.items():
            if environment.get(variable(name), str(port)) != str(port):
                raise StackError(
                    f"{variable(name)}: {name} runs already, on port {port}; first: make stop"
                )
    wanted = [name for name in names if name not in chosen]
    for name in wanted:
        if policy is PortPolicy.DEFAULTS and variable(name) in environment:
            chosen[name] = _named_port(name, environment, frozenset(chosen.values()))
    for name in wanted:
        if name not in chosen:
            chosen[name] = _open_port(name, policy, remembered, frozenset(chosen.values()))
    return chosen


def _named_port(name: str, environment: Mapping[str, str], used: frozenset[int]) -> int:
    text = environment[variable(name)]
    if not text.isdecimal() or not 0 < int(text) <= _LAST_PORT:
        raise StackError(f"{variable(name)}: not a port number: {text!r}")
    port = int(text)
    if port in used or not is_free(port):
        raise PortTakenError(f"{variable(name)}: port {port} is in use by another program")
    return port


def _open_port(
    name: str, policy: PortPolicy, remembered: Mapping[str, int], used: frozenset[int]
) -> int:
    last = remembered.get(name)
    if last is not None and last not in used and is_free(last):
        return last
    if policy is PortPolicy.FREE:
        return _next_free(itertools.islice(_own_ports(), _STRETCH), used)
    first = DEFAULTS[name] if name in DEFAULTS else DEFAULTS[name.rpartition("-")[0]] + 1
    # The other programs' defaults are theirs, also while they are stopped.
    reserved = used | {port for other, port in DEFAULTS.items() if other != name}
    return _next_free(range(first, _LAST_PORT + 1), reserved)


@cache
def _own_ports() -> Iterator[int]:
    """Return ports for ever, round a stretch of the free range that is this process's alone.

    Whoever tests beside us can't take the port of a server that we have stopped for a moment, and
    we come back to it last ourselves. The stretch is ours for as long as we hold its first port.
    """
    starts = list(_FREE_RANGE[::_STRETCH])
    random.shuffle(starts)
    for start in starts:
        claim = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            claim.bind((HOST, start))
        except OSError:
            claim.close()
        else:
            return _round(range(start + 1, start + _STRETCH), claim)
    raise PortTakenError(f"no {_STRETCH} free ports are left")


def _round(ports: range, claim: socket.socket) -> Iterator[int]:
    with claim:
        yield from itertools.cycle(ports)


def _next_free(candidates: Iterable[int], used: frozenset[int]) -> int:
    for port in candidates:
        if port not in used and is_free(port):
            return port
    raise PortTakenError("no free port is left")
