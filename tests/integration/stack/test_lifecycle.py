"""Up, stop and down: from any state to the one that was asked for, and nothing left behind."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import asyncpg
import pytest

from quotagate.stack import PortPolicy, Stack
from quotagate.stack.errors import BusyError, StackError, UnhealthyError
from quotagate.stack.processes import marked

# What a path may hold that shells, URLs and configuration files take for something else.
HOSTILE = "a b %d 'q' #x ;y"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a hostile name; whatever a test left running in it is taken down."""
    path = tmp_path / HOSTILE / "stack"
    yield path
    if path.exists():
        Stack(path, PortPolicy.FREE).down()


def _stack(folder: Path, environment: Mapping[str, str] | None = None) -> Stack:
    return Stack(folder, PortPolicy.FREE, {**os.environ, **(environment or {})})


def _living(pids: Iterable[int]) -> set[int]:
    """Return those of the processes that still run, whoever's mark they carry."""
    return {pid for pid in pids if _state(pid) not in {"", "Z"}}


def _state(pid: int) -> str:
    """Return the kernel's letter for a process; empty: it is gone, Z: only its parent knows."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _pids(stack: Stack) -> dict[str, int]:
    return {status.name: status.pid for status in stack.status()}


async def _write(stack: Stack) -> None:
    connection = await asyncpg.connect(stack.servers.database_url)
    try:
        await connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    finally:
        await connection.close()


async def _read(stack: Stack) -> object:
    connection = await asyncpg.connect(stack.servers.database_url)
    try:
        return await connection.fetchval("SELECT answer FROM kept")
    finally:
        await connection.close()


def test_up_twice_touches_nothing_that_runs(folder: Path) -> None:
    stack = _stack(folder)
    stack.up(services=("fake-provider",))
    before, state = _pids(stack), stack.state

    again = _stack(folder)
    again.up(services=("fake-provider",))

    assert _pids(again) == before
    assert again.state == state


def test_up_adds_and_removes_programs_of_a_running_stack(folder: Path) -> None:
    stack = _stack(folder)
    stack.up(services=())
    servers = _pids(stack)

    stack.up(services=("fake-provider",))
    assert _pids(stack) == {**servers, "fake-provider": _pids(stack)["fake-provider"]}

    stack.up(services=())
    assert _pids(stack) == servers


def test_stop_keeps_the_data(folder: Path) -> None:
    stack = _stack(folder)
    stack.up(services=())
    asyncio.run(_write(stack))
    pids = _pids(stack).values()

    stack.stop_all()
    assert not stack.is_running
    assert _living(pids) == set()

    stack.up(services=())
    assert asyncio.run(_read(stack)) == 42


def test_up_recovers_from_a_killed_supervisor(folder: Path) -> None:
    stack = _stack(folder)
    stack.up(services=("fake-provider",))
    asyncio.run(_write(stack))
    orphans = set(_pids(stack).values())

    os.kill(int((folder / "supervisor.pid").read_text()), signal.SIGKILL)
    again = _stack(folder)
    again.up(services=("fake-provider",))

    assert _living(orphans) == set()
    assert asyncio.run(_read(again)) == 42


def test_up_recovers_when_everything_was_killed_at_once(folder: Path) -> None:
    stack = _stack(folder)
    stack.up(services=())
    found = marked(stack.state.mark)
    assert set(_pids(stack).values()) < set(found)
    for pid in found:
        os.kill(pid, signal.SIGKILL)

    # As after a reboot: the number in Postgres's note belongs to somebody else by now.
    note = Path(str(stack.state.postgres_home)) / "data" / "postmaster.pid"
    lines = note.read_text().splitlines()
    note.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")

    stack.up(services=())
    assert {status.state for status in stack.status()} <= {"RUNNING", "STARTING"}


def test_down_ends_frozen_programs_too_and_leaves_nothing(folder: Path) -> None:
    stack = _stack(folder)
    stack.up(services=("fake-provider",))
    pids, home = _pids(stack).values(), Path(str(stack.state.postgres_home))
    for name in ("valkey", "fake-provider"):
        stack.signal(name, "STOP")

    stack.down()

    assert _living(pids) == set()
    assert not folder.exists()
    assert not home.exists()


def test_down_ends_what_a_killed_supervisor_left(folder: Path) -> None:
    stack = _stack(folder)
    stack.up(services=())
    pids = _pids(stack).values()
    os.kill(int((folder / "supervisor.pid").read_text()), signal.SIGKILL)

    _stack(folder).down()

    assert _living(pids) == set()
    assert not folder.exists()


def test_down_is_content_where_nothing_is(folder: Path) -> None:
    _stack(folder).down()
    assert not folder.exists()


def test_a_stopped_program_stays_stopped_until_it_is_started(folder: Path) -> None:
    stack = _stack(folder)
    stack.up(services=())

    stack.stop("valkey")
    assert _pids(stack)["valkey"] == 0
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", stack.state.ports["valkey"]))

    stack.start("valkey")
    assert stack.problem("valkey") is None


def test_a_program_that_does_not_come_up_is_named_with_its_last_words(
    folder: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "valkey-server"
    broken.write_text("#!/bin/sh\necho 'I am broken'\nexit 3\n")
    broken.chmod(0o755)
    stack = _stack(folder, {"QUOTAGATE_VALKEY_SERVER": str(broken)})

    with pytest.raises(UnhealthyError, match=r"(?s)valkey: exits.*I am broken"):
        stack.up(services=())

    assert {"nats", "postgres"} <= {status.name for status in stack.status() if status.pid}


def test_a_program_that_can_not_even_begin_is_named_too(folder: Path) -> None:
    # Its log can't be written. The supervisor says so at once, as it does of a program that
    # left before it looked, which no test can have happen each time.
    (folder / "logs" / "valkey.log").mkdir(parents=True)
    stack = _stack(folder)

    with pytest.raises(UnhealthyError, match=r"valkey: exits.*EISDIR"):
        stack.up(services=())

    assert {"nats", "postgres"} <= {status.name for status in stack.status() if status.pid}


def test_a_program_that_does_not_exist_is_an_error_with_the_names_that_do(folder: Path) -> None:
    stack = _stack(folder)
    stack.up(services=())
    with pytest.raises(StackError, match="no program is called valky; there are: nats, postgres"):
        stack.stop("valky")


def test_two_commands_at_once_are_refused(folder: Path) -> None:
    stack = _stack(folder)
    stack.up(services=())
    with stack._locked(), pytest.raises(BusyError):
        _stack(folder).up(services=())


def test_a_damaged_state_is_an_error_and_nothing_is_started(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "state.json").write_text("{")
    with pytest.raises(StackError, match="damaged"):
        _stack(folder)
    (folder / "state.json").unlink()


def test_postgres_does_not_run_as_root(folder: Path) -> None:
    stack = _stack(folder)
    stack.up(services=())
    assert Path(f"/proc/{_pids(stack)['postgres']}").stat().st_uid != 0
