"""The real servers and the real stack, on free ports, started once per run and removed after it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from quotagate.stack import PortPolicy, Servers, Stack

_STACKS = Path(__file__).parents[1] / "build" / "test-stacks"


def _process_lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _remove_leftovers() -> None:
    """Take down the stacks of runs that were killed before they could."""
    for folder in _STACKS.glob("*-*"):
        pid = folder.name.partition("-")[0]
        if pid.isdecimal() and not _process_lives(int(pid)):
            Stack(folder, PortPolicy.FREE).down()


@contextlib.contextmanager
def _stack(name: str) -> Iterator[Stack]:
    _remove_leftovers()
    stack = Stack(_STACKS / f"{os.getpid()}-{name}", PortPolicy.FREE)
    try:
        yield stack
    finally:
        stack.down()


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """NATS, Valkey and a migrated Postgres without any service. Use team ids of your own."""
    with _stack("servers") as stack:
        stack.up(services=())
        yield stack.servers


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """Everything: servers of its own, all services, the fake provider, the demo data."""
    with _stack("stack") as stack:
        stack.up()
        yield stack


@pytest.fixture
def own_servers() -> Iterator[Stack]:
    """A stack of this test alone with only its servers, to stop, freeze and kill."""
    with _stack("own") as stack:
        stack.up(services=())
        yield stack


@pytest.fixture(scope="module")
def module_servers() -> Iterator[Stack]:
    """A stack of this module alone with only its servers; each test leaves them as it met them."""
    with _stack("module") as stack:
        stack.up(services=())
        yield stack
