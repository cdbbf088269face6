"""Every kind of fault."""

import asyncio
import time
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

REPLICAS = {
    "edge-proxy": 2,
    "admission": 2,
    "tier-cache": 2,
    "settlement": 2,
    "control-plane": 1,
    "fake-provider": 1,
}
PROGRAMS = tuple(
    service if number == 1 else f"{service}-{number}"
    for service, count in REPLICAS.items()
    for number in range(1, count + 1)
)
SERVERS = ("nats", "valkey", "postgres")
_TALKS_TO = {
    "edge-proxy": ("nats", "fake-provider"),
    "admission": ("nats", "valkey"),
    "tier-cache": ("nats", "valkey", "postgres"),
    "settlement": ("nats", "valkey", "postgres"),
    "control-plane": ("nats", "postgres"),
    "fake-provider": (),
}
WIRES = (
    *(f"clients>{program}" for program in PROGRAMS if program.startswith("edge-proxy")),
    *(
        f"{program}>{server}"
        for program in PROGRAMS
        for service, servers in _TALKS_TO.items()
        if program == service or program.rpartition("-")[0] == service
        for server in servers
    ),
)

CRASH_POINTS = (
    "edge.admitted",
    "edge.noted",
    "edge.answered",
    "edge.charged",
    "edge.published",
    "edge.recorded",
    "edge.spooled",
    "edge.republished",
    "edge.inheriting",
    "edge.inherited",
    "admission.asked",
    "admission.decided",
    "admission.charging",
    "admission.charged",
    "tier_cache.read",
    "tier_cache.filled",
    "tier_cache.changed",
    "settlement.fetched",
    "settlement.stored",
    "settlement.acknowledged",
    "settlement.charged",
    "settlement.committed",
    "settlement.refreshed",
    "control_plane.changed",
    "control_plane.committed",
    "control_plane.published",
)
"""Each numbered step of a request's way, and each gap between commit, acknowledgement, refresh."""


class Kind(StrEnum):
    """What happens to a target, for as long as the fault lasts."""

    KILL = "kill"
    """SIGKILL; its supervisor starts it again."""
    FREEZE = "freeze"
    """SIGSTOP, with all its children, and SIGCONT after a while."""
    TERMINATE = "terminate"
    """SIGTERM, as in a rolling restart."""
    STOP = "stop"
    """It stays away for a while."""
    POSTGRES_FAST = "postgres fast restart"
    """SIGINT: open transactions are rolled back."""
    POSTGRES_IMMEDIATE = "postgres immediate restart"
    """SIGQUIT: no shutdown checkpoint, recovery at the start."""
    CRASH = "crash"
    """The next process that passes the named point dies there."""

    CUT = "cut"
    DELAY = "delay"
    HOLD = "hold"
    """Nothing arrives, either way, until it is over; then all of it."""
    HOLD_REQUESTS = "hold requests"
    HOLD_REPLIES = "hold replies"
    LOSE = "lose"
    """A black hole, both ways."""
    LOSE_REPLIES = "lose replies"
    """What is asked is done, but nobody hears of it."""
    REFUSE = "refuse"

    FLUSH = "flush"
    """FLUSHALL of Valkey."""
    FORGET_SCRIPTS = "forget scripts"
    LATE_FILL = "late fill"
    """Fills that read the database before a change arrive after it."""
    LATE_REFRESH = "late refresh"
    """A settlement's word to the cache arrives after the next settlement's."""
    STREAM_FULL = "stream full"
    DISK_FULL = "disk full"
    """Of the edges' spool and journal."""

    REPEAT = "repeat"
    """Records of the stream come again, with their message ids."""
    REPEAT_ANEW = "repeat anew"
    """And without."""
    REORDER = "reorder"
    """The latest records come again, the newest first, without message ids."""
    REPEAT_CHANGES = "repeat changes"
    """Change events come again, the newest first, without message ids."""


WIRE_KINDS = frozenset(
    {
        Kind.CUT,
        Kind.DELAY,
        Kind.HOLD,
        Kind.HOLD_REQUESTS,
        Kind.HOLD_REPLIES,
        Kind.LOSE,
        Kind.LOSE_REPLIES,
        Kind.REFUSE,
    }
)
_SILENCING = frozenset({Kind.HOLD, Kind.HOLD_REPLIES, Kind.LOSE, Kind.LOSE_REPLIES, Kind.REFUSE})
_ALL_ADMISSIONS = "admission*>valkey"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `target` is a program, a server, a wire (with `*` several), or a crash point."""

    kind: Kind
    target: str
    duration_s: float = 0

    def __str__(self) -> str:
        lasts = f" for {self.duration_s:.1f} s" if self.duration_s else ""
        return f"{self.kind} {self.target}{lasts}"

    @property
    def touches(self) -> frozenset[str]:
        """Return what no other fault may touch at the same time."""
        if self.kind in WIRE_KINDS:
            return frozenset(wires(self.target))
        if self.kind is Kind.LATE_FILL:
            return frozenset({"valkey", *wires("tier-cache*>valkey"), *wires("tier-cache*>nats")})
        if self.kind is Kind.LATE_REFRESH:
            return frozenset({"valkey", *wires("settlement*>valkey")})
        return frozenset({self.target})

    @property
    def store_unknown(self) -> bool:
        """Whether no admission can know the limits as long as this lasts."""
        if self.target == "valkey":
            return self.kind in {Kind.FREEZE, Kind.STOP}
        return self.target == _ALL_ADMISSIONS and self.kind in _SILENCING

    @property
    def delays_dispatch(self) -> bool:
        """Whether what was admitted before may be sent, or noted by the provider, only later."""
        if self.target.startswith("edge-proxy") and self.target.endswith("fake-provider"):
            return self.kind in WIRE_KINDS
        return self.kind is Kind.FREEZE and self.target.startswith(("edge-proxy", "fake-provider"))

    @property
    def alone(self) -> bool:
        """Whether nothing else may be wrong meanwhile, so that it is evidence."""
        return self.store_unknown


@dataclass(frozen=True, slots=True)
class InForce:
    """When a fault was fully in force, unix microseconds."""

    start_us: int
    end_us: int


async def lasting(fault: Fault) -> InForce:
    """Let a fault that is in force last, and return when it was."""
    start_us = time.time_ns() // 1000
    await asyncio.sleep(fault.duration_s)
    return InForce(start_us, time.time_ns() // 1000)


def wires(pattern: str) -> list[str]:
    """Return the wires that a pattern names."""
    return [wire for wire in WIRES if fnmatchcase(wire, pattern)]
