"""What the processes of the stack use: CPU seconds and memory, as Linux counts them in /proc."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from quotagate.stack import Stack
from quotagate.stack.layout import service_of

_PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_KIB = 1024
_MIB = 1024**2
# Fields of /proc/<pid>/stat after the name in parentheses, which may hold anything.
_PARENT, _USER_TICKS, _SYSTEM_TICKS = 1, 11, 12


@dataclass(frozen=True, slots=True)
class Reading:
    """What each service had used at one moment, its replicas and their children together."""

    cpu_s: Mapping[str, float]
    memory_mib: Mapping[str, float]
    """Resident; Postgres's shared memory counts once."""

    def cpu_since(self, earlier: "Reading") -> dict[str, float]:
        """Return the CPU seconds used since then."""
        return {name: used_s - earlier.cpu_s.get(name, 0) for name, used_s in self.cpu_s.items()}


def read(stack: Stack) -> Reading:
    """Read the meters of every process that runs."""
    parents, cpu_s = _processes()
    cpu: dict[str, float] = {}
    memory: dict[str, float] = {}
    for status in stack.status():
        if not status.pid:
            continue
        service = service_of(status.name)
        pids = _family(status.pid, parents)
        cpu[service] = cpu.get(service, 0) + sum(cpu_s.get(pid, 0) for pid in pids)
        memory[service] = memory.get(service, 0) + sum(_memory_mib(pid) for pid in pids)
    return Reading(cpu, memory)


def _processes() -> tuple[dict[int, int], dict[int, float]]:
    parents: dict[int, int] = {}
    cpu_s: dict[int, float] = {}
    for entry in _PROC.glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has left
        pid = int(entry.name)
        parents[pid] = int(fields[_PARENT])
        cpu_s[pid] = (int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])) / _TICKS_PER_S
    return parents, cpu_s


def _family(pid: int, parents: Mapping[int, int]) -> list[int]:
    """Return a process and all that descend from it."""
    found = [pid]
    for each in found:
        found.extend(child for child, parent in parents.items() if parent == each)
    return found


def _memory_mib(pid: int) -> float:
    """Return the proportional share where the system tells it, else what is resident."""
    try:
        rollup = (_PROC / str(pid) / "smaps_rollup").read_text()
    except OSError:
        return 0.0
    kib = next((line.split()[1] for line in rollup.splitlines() if line.startswith("Pss:")), "0")
    return int(kib) * _KIB / _MIB
