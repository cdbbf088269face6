"""Ports: the documented ones, the next free ones, or those that variables name."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from quotagate.stack import ports
from quotagate.stack.errors import PortTakenError, StackError
from quotagate.stack.ports import PortPolicy


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another program listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def free() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def _default(monkeypatch: pytest.MonkeyPatch, **defaults: int) -> None:
    monkeypatch.setattr(
        ports, "DEFAULTS", {name.replace("_", "-"): p for name, p in defaults.items()}
    )


def test_a_free_default_is_taken(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    _default(monkeypatch, nats=free)
    assert ports.choose(["nats"], PortPolicy.DEFAULTS, {}, {}) == {"nats": free}


def test_a_default_that_somebody_holds_gives_way(
    monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    _default(monkeypatch, nats=taken)
    chosen = ports.choose(["nats"], PortPolicy.DEFAULTS, {}, {})["nats"]
    assert chosen > taken
    assert ports.is_free(chosen)


def test_a_listener_on_all_addresses_counts() -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:  # noqa: S104 - that is the case
        assert not ports.is_free(server.getsockname()[1])


def test_the_last_choice_is_kept(monkeypatch: pytest.MonkeyPatch, taken: int, free: int) -> None:
    _default(monkeypatch, nats=taken)
    assert ports.choose(["nats"], PortPolicy.DEFAULTS, {"nats": free}, {}) == {"nats": free}


def test_a_last_choice_that_somebody_took_since_gives_way(
    monkeypatch: pytest.MonkeyPatch, taken: int, free: int
) -> None:
    _default(monkeypatch, nats=free)
    assert ports.choose(["nats"], PortPolicy.DEFAULTS, {"nats": taken}, {}) == {"nats": free}


def test_what_runs_keeps_its_port_although_it_is_in_use(taken: int) -> None:
    chosen = ports.choose(["nats"], PortPolicy.DEFAULTS, {"nats": taken}, {}, frozenset({"nats"}))
    assert chosen == {"nats": taken}


def test_what_runs_can_not_get_another_port(taken: int) -> None:
    environment = {"QUOTAGATE_NATS_PORT": "14222"}
    with pytest.raises(
        StackError, match=f"QUOTAGATE_NATS_PORT: nats runs already, on port {taken}"
    ):
        ports.choose(
            ["nats"], PortPolicy.DEFAULTS, {"nats": taken}, environment, frozenset({"nats"})
        )


def test_a_replica_gets_the_next_port_and_never_another_program_s(
    monkeypatch: pytest.MonkeyPatch, free: int
) -> None:
    _default(monkeypatch, edge_proxy=free, control_plane=free + 1)
    chosen = ports.choose(["edge-proxy", "edge-proxy-2"], PortPolicy.DEFAULTS, {}, {})
    assert chosen["edge-proxy"] == free
    assert chosen["edge-proxy-2"] >= free + 2


def test_a_variable_sets_the_port(free: int) -> None:
    environment = {"QUOTAGATE_NATS_MONITOR_PORT": str(free)}
    chosen = ports.choose(["nats-monitor"], PortPolicy.DEFAULTS, {"nats-monitor": 1}, environment)
    assert chosen == {"nats-monitor": free}


def test_a_variable_s_port_that_is_taken_is_an_error_with_its_name(taken: int) -> None:
    environment = {"QUOTAGATE_POSTGRES_PORT": str(taken)}
    with pytest.raises(PortTakenError, match=f"QUOTAGATE_POSTGRES_PORT: port {taken} is in use"):
        ports.choose(["postgres"], PortPolicy.DEFAULTS, {}, environment)


def test_two_variables_with_one_port_are_an_error_with_a_name(free: int) -> None:
    environment = {"QUOTAGATE_NATS_PORT": str(free), "QUOTAGATE_VALKEY_PORT": str(free)}
    with pytest.raises(PortTakenError, match="QUOTAGATE_VALKEY_PORT"):
        ports.choose(["nats", "valkey"], PortPolicy.DEFAULTS, {}, environment)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("nats", id="no number"),
        pytest.param("0", id="zero"),
        pytest.param("-1", id="negative"),
        pytest.param("65536", id="too large"),
        pytest.param("1.5", id="a fraction"),
    ],
)
def test_a_variable_that_is_no_port_is_an_error_with_its_name(text: str) -> None:
    with pytest.raises(StackError, match="QUOTAGATE_NATS_PORT: not a port number"):
        ports.choose(["nats"], PortPolicy.DEFAULTS, {}, {"QUOTAGATE_NATS_PORT": text})


def test_free_ports_differ_and_ignore_variables() -> None:
    names = list(ports.DEFAULTS)
    chosen = ports.choose(names, PortPolicy.FREE, {}, {"QUOTAGATE_NATS_PORT": "1"})
    assert set(chosen) == set(names)
    assert len(set(chosen.values())) == len(names)
    assert chosen["nats"] != 1


def test_a_free_port_is_not_chosen_again_soon() -> None:
    """A server that a test has stopped for a moment finds its port again."""
    chosen = [ports.choose(["nats"], PortPolicy.FREE, {}, {})["nats"] for _ in range(300)]
    assert len(set(chosen)) == 300


def test_processes_choose_from_stretches_of_their_own() -> None:
    program = (
        "from quotagate.stack.ports import PortPolicy, choose\n"
        "print(choose(['nats'], PortPolicy.FREE, {}, {})['nats'], flush=True)\n"
        "input()"
    )
    with contextlib.ExitStack() as stack:
        others = [
            stack.enter_context(
                subprocess.Popen(  # noqa: S603 # our own interpreter and text
                    [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
            )
            for _ in range(3)
        ]
        chosen = [int(other.stdout.readline()) for other in others if other.stdout is not None]
        chosen.append(ports.choose(["nats"], PortPolicy.FREE, {}, {})["nats"])
        for other in others:
            other.communicate(b"\n")
    assert len({port // 500 for port in chosen}) == 4
