"""Has faults strike, several at once where they don't disturb each other."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import asyncpg
import nats.errors
from faults.evidence import Window
from faults.scene import Scene
from faults.seeds import chance
from faults.strikes import messages, processes, stores, wires
from faults.strikes.fault import WIRE_KINDS, Fault, InForce, Kind
from faults.strikes.processes import NotReachedError
from faults.world import World
from redis.exceptions import RedisError

from quotagate.stack.errors import StackError

# A fault needs servers to strike with, and other faults may have taken them.
_FIZZLES = (
    OSError,
    TimeoutError,
    NotReachedError,
    RedisError,
    StackError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    nats.errors.Error,
)
# Before a fault that is evidence, what others have left must be over.
_REST_S = 1.0

Strike = Callable[[World, Fault], Awaitable[InForce | None]]
_STRIKES: dict[Kind, Strike] = {
    Kind.KILL: processes.kill,
    Kind.FREEZE: processes.freeze,
    Kind.STOP: processes.stop,
    Kind.TERMINATE: processes.restart,
    Kind.POSTGRES_FAST: processes.restart,
    Kind.POSTGRES_IMMEDIATE: processes.restart,
    Kind.CRASH: processes.crash,
    Kind.FLUSH: stores.flush,
    Kind.FORGET_SCRIPTS: stores.forget_scripts,
    Kind.LATE_REFRESH: stores.late_refresh,
    Kind.STREAM_FULL: stores.stream_full,
    Kind.DISK_FULL: stores.disk_full,
    Kind.REPEAT: messages.repeat,
    Kind.REPEAT_ANEW: messages.repeat,
    Kind.REORDER: messages.repeat,
    Kind.REPEAT_CHANGES: messages.repeat,
    **dict.fromkeys(WIRE_KINDS, wires.trouble),
    Kind.CUT: wires.cut,
}

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Density:
    """How close to each other faults strike."""

    at_once: int = 3
    gap_s: tuple[float, float] = (0.1, 1.0)
    """Between the beginning of one and of the next, at least: drawn from this range."""


class Striker:
    """Strikes, and remembers when which fault was in force."""

    def __init__(self, scene: Scene, seed: int, density: Density, tell: Tell) -> None:
        self._scene = scene
        self._density = density
        self._rng = chance(seed)
        self._tell = tell
        self._active: dict[asyncio.Task[None], Fault] = {}
        self.windows: list[Window] = []
        self.struck: Counter[Kind] = Counter()
        self.fizzled: list[Fault] = []

    async def run(self, faults: Sequence[Fault]) -> None:
        """Strike one after the other, without waiting for an earlier one that is still on."""
        for fault in faults:
            await self._room_for(fault)
            task = asyncio.create_task(self._strike(fault))
            self._active[task] = fault
            task.add_done_callback(partial(self._active.pop))
            if fault.alone:
                await task
            await asyncio.sleep(self._rng.uniform(*self._density.gap_s))
        await self._until(lambda: not self._active)

    async def again(self, kind: Kind) -> None:
        """Strike once more with those faults of a kind that found nothing to strike."""
        missed = [fault for fault in self.fizzled if fault.kind is kind]
        self.fizzled = [fault for fault in self.fizzled if fault.kind is not kind]
        for fault in missed:
            await self._strike(fault)

    async def _room_for(self, fault: Fault) -> None:
        if fault.alone:
            await self._until(lambda: not self._active)
            await asyncio.sleep(_REST_S)
        await self._until(
            lambda: (
                len(self._active) < self._density.at_once
                and not any(fault.touches & other.touches for other in self._active.values())
            )
        )

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await asyncio.wait(list(self._active), return_when=asyncio.FIRST_COMPLETED)

    async def _strike(self, fault: Fault) -> None:
        started_us = time.time_ns() // 1000
        in_force = None
        try:
            in_force = await self._do(fault)
        except _FIZZLES as error:
            self.fizzled.append(fault)
            self._tell(f"fizzled: {fault}: {type(error).__name__} {error}")
        else:
            self.struck[fault.kind] += 1
        ended_us = time.time_ns() // 1000
        self._tell(f"{(ended_us - started_us) / 1e6:6.2f} s  {fault}")
        self._remember(fault, InForce(started_us, ended_us), in_force)

    async def _do(self, fault: Fault) -> InForce | None:
        if fault.kind is Kind.LATE_FILL:
            await stores.late_fill(self._scene)
            return None
        return await _STRIKES[fault.kind](self._scene.world, fault)

    def _remember(self, fault: Fault, outer: InForce, inner: InForce | None) -> None:
        """Remember a fault by its longest time, or, if it is evidence, by what is sure."""
        evidence = fault.store_unknown and inner is not None
        span = inner if evidence and inner is not None else outer
        self.windows.append(
            Window(
                fault=fault.kind.value,
                target=fault.target,
                start_us=span.start_us,
                end_us=span.end_us,
                store_unknown=evidence,
                delays_dispatch=fault.delays_dispatch,
            )
        )
