"""Which faults strike, in which order."""

import random
from collections.abc import Sequence

from faults.seeds import chance
from faults.strikes.fault import (
    CRASH_POINTS,
    PROGRAMS,
    REPLICAS,
    SERVERS,
    WIRE_KINDS,
    WIRES,
    Fault,
    Kind,
)

_LASTS_S: dict[Kind, tuple[float, float]] = {
    Kind.FREEZE: (0.3, 3.0),
    Kind.STOP: (0.5, 4.0),
    Kind.DELAY: (1.0, 4.0),
    Kind.HOLD: (0.3, 3.0),
    Kind.HOLD_REQUESTS: (0.3, 3.0),
    Kind.HOLD_REPLIES: (0.3, 3.0),
    Kind.LOSE: (0.3, 3.0),
    Kind.LOSE_REPLIES: (0.3, 3.0),
    Kind.REFUSE: (0.3, 3.0),
    Kind.STREAM_FULL: (1.0, 5.0),
    Kind.DISK_FULL: (2.0, 6.0),
}
# What makes evidence must outlast what was on its way when it began.
_EVIDENCE_S = (2.5, 4.0)

_STORE_KINDS = (Kind.FLUSH, Kind.FORGET_SCRIPTS, Kind.LATE_FILL, Kind.LATE_REFRESH)
_MESSAGE_KINDS = (Kind.REPEAT, Kind.REPEAT_ANEW, Kind.REORDER, Kind.REPEAT_CHANGES)
_ALL_ADMISSIONS = "admission*>valkey"


def _fault(rng: random.Random, kind: Kind, target: str) -> Fault:
    if kind not in _LASTS_S:
        return Fault(kind, target)
    evidence = Fault(kind, target).store_unknown
    low_s, high_s = _EVIDENCE_S if evidence else _LASTS_S[kind]
    return Fault(kind, target, round(rng.uniform(low_s, high_s), 2))


def _on_process(rng: random.Random) -> Fault:
    target = rng.choice((*PROGRAMS, *SERVERS, *SERVERS))
    kinds = [Kind.KILL, Kind.FREEZE, Kind.STOP]
    if target in PROGRAMS:
        kinds += [Kind.KILL, Kind.TERMINATE]
    if target == "postgres":
        kinds += [Kind.POSTGRES_FAST, Kind.POSTGRES_IMMEDIATE]
    return _fault(rng, rng.choice(kinds), target)


def _on_wire(rng: random.Random) -> Fault:
    target = rng.choice((*WIRES, *([_ALL_ADMISSIONS] * 4)))
    return _fault(rng, rng.choice(sorted(WIRE_KINDS)), target)


def _at_crash_point(rng: random.Random) -> Fault:
    return Fault(Kind.CRASH, rng.choice(CRASH_POINTS))


def _on_store(rng: random.Random) -> Fault:
    return _fault(rng, rng.choice(_STORE_KINDS), "valkey")


def _on_messages(rng: random.Random) -> Fault:
    return _fault(rng, rng.choice(_MESSAGE_KINDS), "messages")


def _fills_up(rng: random.Random) -> Fault:
    full = rng.choice([(Kind.STREAM_FULL, "records"), (Kind.DISK_FULL, "spool")])
    return _fault(rng, *full)


_DRAWERS = (
    (_on_process, 8),
    (_on_wire, 9),
    (_at_crash_point, 4),
    (_on_store, 2),
    (_on_messages, 2),
    (_fills_up, 1),
)


def drawn(seed: int, count: int) -> Sequence[Fault]:
    """Return faults drawn from a seed; the same seed gives the same faults."""
    rng = chance(seed)
    drawers, weights = zip(*_DRAWERS, strict=True)
    return [drawer(rng) for drawer in rng.choices(drawers, weights, k=count)]


def tour(seed: int) -> Sequence[Fault]:
    """Return a short plan in which each kind strikes somewhere, and each crash point once."""
    rng = chance(seed)
    faults = [Fault(Kind.CRASH, point) for point in CRASH_POINTS]
    faults += [_fault(rng, kind, rng.choice(WIRES)) for kind in sorted(WIRE_KINDS)]
    faults += [_fault(rng, kind, "valkey") for kind in _STORE_KINDS]
    faults += [_fault(rng, kind, "messages") for kind in _MESSAGE_KINDS]
    # At crash points the first of each service dies often enough.
    killed = [program for program in PROGRAMS if REPLICAS.get(program, 1) == 1]
    faults += [_fault(rng, Kind.KILL, target) for target in (*killed, *SERVERS)]
    faults += [_fault(rng, Kind.FREEZE, target) for target in SERVERS]
    faults += [
        _fault(rng, Kind.FREEZE, rng.choice(PROGRAMS)),
        _fault(rng, Kind.TERMINATE, rng.choice(PROGRAMS)),
        _fault(rng, Kind.STOP, "nats"),
        _fault(rng, Kind.LOSE, _ALL_ADMISSIONS),
        Fault(Kind.POSTGRES_FAST, "postgres"),
        Fault(Kind.POSTGRES_IMMEDIATE, "postgres"),
        _fault(rng, Kind.STREAM_FULL, "records"),
        _fault(rng, Kind.DISK_FULL, "spool"),
    ]
    rng.shuffle(faults)
    return faults
