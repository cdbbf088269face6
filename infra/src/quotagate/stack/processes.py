"""Finds and ends the processes of a stack whose supervisor is gone.

Each carries the stack's mark in its environment. Only Linux shows that; elsewhere a supervisor that
was killed leaves its programs to the user, and the next start names the ports they hold.
"""

import os
import signal
import time
from pathlib import Path

from quotagate.stack.programs import MARK_VARIABLE

_PROC = Path("/proc")
_GENTLE_S = 8.0
_HARD_S = 5.0


def marked(mark: str) -> dict[int, int]:
    """Return the living processes with this mark, and each one's parent."""
    needle = f"{MARK_VARIABLE}={mark}".encode()
    found: dict[int, int] = {}
    for entry in _PROC.glob("[0-9]*"):
        try:
            if needle not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            # The name in parentheses may hold anything; the fields after it don't.
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has left, or it is another user's
        state, parent = fields[0], int(fields[1])
        if state != "Z" and int(entry.name) != os.getpid():
            found[int(entry.name)] = parent
    return found


def thaw(mark: str) -> None:
    """Let frozen processes of the stack run on, or they can't hear that they shall stop."""
    for pid in marked(mark):
        _signal(pid, signal.SIGCONT)


def end_all(mark: str) -> int:
    """End what is left of a stack, gently first; returns how many processes there were."""
    found = marked(mark)
    for pid, parent in found.items():
        _signal(pid, signal.SIGCONT)
        # Only the tops: a server's own children are its own to end.
        if parent not in found:
            _signal(pid, signal.SIGTERM)
    if not wait_until_gone(mark, _GENTLE_S):
        for pid in marked(mark):
            _signal(pid, signal.SIGKILL)
        wait_until_gone(mark, _HARD_S)
    return len(found)


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it has left meanwhile


def wait_until_gone(mark: str, timeout_s: float) -> bool:
    """Wait until no process of the stack is left; tell whether that came true."""
    deadline_s = time.monotonic() + timeout_s
    while marked(mark):
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.05)
    return True
