"""Waits until programs are really ready, and says why when one isn't."""

import http.client
import json
import socket
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from quotagate.stack.errors import UnhealthyError
from quotagate.stack.ports import HOST
from quotagate.stack.supervisor import ProcessStatus, Supervisor

Probe = Callable[[], str | None]
"""Asks once, briefly. None: ready; otherwise why not."""

_PROBE_TIMEOUT_S = 2.0
_POLL_S = 0.03
_STATUS_EVERY_S = 0.5
# A program that keeps leaving at once won't come up by waiting longer.
_BACKOFF_LIMIT_S = 4.0
_LOG_LINES = 15
_HTTP_OK = 200
_POSTGRES_PROTOCOL = 3 << 16
_POSTGRES_ASKS_PASSWORD = b"R"


def http_probe(port: int, path: str) -> Probe:
    """Return a probe that wants status 200, and tells the answer's `reasons` otherwise."""

    def ask() -> str | None:
        connection = http.client.HTTPConnection(HOST, port, timeout=_PROBE_TIMEOUT_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            return f"{path} on port {port}: {error}"
        finally:
            connection.close()
        if answer.status == _HTTP_OK:
            return None
        return f"{path} answers {answer.status}{_reasons(body)}"

    return ask


def _reasons(body: bytes) -> str:
    try:
        reasons = json.loads(body)["reasons"]
        return ": " + "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    except (ValueError, TypeError, KeyError, AttributeError):
        return ""


def valkey_probe(port: int, user: str, password: str) -> Probe:
    """Return a probe that logs in and wants PONG, which a server still loading doesn't say."""

    def ask() -> str | None:
        try:
            with socket.create_connection((HOST, port), timeout=_PROBE_TIMEOUT_S) as connection:
                connection.sendall(f"AUTH {user} {password}\r\nPING\r\n".encode())
                answer = connection.makefile("rb")
                lines = [answer.readline().strip() for _ in range(2)]
        except OSError as error:
            return f"port {port}: {error}"
        return None if lines == [b"+OK", b"+PONG"] else b" ".join(lines).decode(errors="replace")

    return ask


def postgres_probe(port: int) -> Probe:
    """Return a probe that begins to log in: a server that is still starting refuses that."""
    parameters = b"user\0postgres\0database\0postgres\0\0"
    greeting = struct.pack("!ii", 8 + len(parameters), _POSTGRES_PROTOCOL) + parameters

    def ask() -> str | None:
        try:
            with socket.create_connection((HOST, port), timeout=_PROBE_TIMEOUT_S) as connection:
                connection.sendall(greeting)
                answer = connection.recv(1024)
        except OSError as error:
            return f"port {port}: {error}"
        if answer.startswith(_POSTGRES_ASKS_PASSWORD):
            return None
        return answer[5:].replace(b"\0", b" ").decode(errors="replace") or "it hung up"

    return ask


def wait_until_ready(
    probes: Mapping[str, Probe], supervisor: Supervisor, logs: Path, timeout_s: float
) -> None:
    """Return when every program is ready.

    Raises:
        UnhealthyError: one left for good or took longer; the text names it, why, and its last
            log lines.

    """
    waiting = dict(probes)
    started_s = time.monotonic()
    asked_s = started_s
    backoff_since_s: dict[str, float] = {}
    while waiting:
        answers = {name: probe() for name, probe in waiting.items()}
        waiting = {name: waiting[name] for name, problem in answers.items() if problem}
        now_s = time.monotonic()
        if waiting and now_s - asked_s > _STATUS_EVERY_S:
            asked_s = now_s
            for status in supervisor.status():
                if status.name in waiting and _has_failed(status, backoff_since_s, now_s):
                    raise UnhealthyError(_explain(status.name, f"exits: {status.detail}", logs))
        if waiting and now_s - started_s > timeout_s:
            name = next(iter(waiting))
            problem = f"not ready after {timeout_s:.0f} s: {answers[name]}"
            raise UnhealthyError(_explain(name, problem, logs))
        if waiting:
            time.sleep(_POLL_S)


def _has_failed(status: ProcessStatus, backoff_since_s: dict[str, float], now_s: float) -> bool:
    if status.state == "FATAL":
        return True
    if status.state == "RUNNING":
        backoff_since_s.pop(status.name, None)
    if status.state == "BACKOFF":
        backoff_since_s.setdefault(status.name, now_s)
    since_s = backoff_since_s.get(status.name)
    return since_s is not None and now_s - since_s > _BACKOFF_LIMIT_S


def _explain(name: str, problem: str, logs: Path) -> str:
    lines = last_lines(logs / f"{name}.log", _LOG_LINES)
    said = "".join(f"\n  {line}" for line in lines) or " nothing"
    return f"{name}: {problem}\nits last log lines ({logs / name}.log):{said}"


def last_lines(path: Path, count: int) -> list[str]:
    """Return the last lines of a log file; none where there is no file."""
    if not path.is_file():
        return []
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - 256 * count - 65_536))
        return file.read().decode(errors="replace").splitlines()[-count:]
