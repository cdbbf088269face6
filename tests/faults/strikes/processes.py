"""Processes that die, freeze, or stay away."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

from faults.strikes.fault import CRASH_POINTS, Fault, InForce, Kind, lasting
from faults.strikes.wires import trouble as wire_trouble
from faults.world import World

from quotagate.stack.errors import NotRunningError, UnhealthyError

_BACK_WITHIN_S = 45
_REACHED_WITHIN_S = 20
_POLL_S = 0.03
_OUTLASTS_HAND_OFF_S = 5.5
_REPUBLISHED_WITHIN_S = 2.0
_RESTARTS = {
    Kind.TERMINATE: "TERM",
    Kind.POSTGRES_FAST: "INT",
    Kind.POSTGRES_IMMEDIATE: "QUIT",
}


class NotReachedError(Exception):
    """Nobody passed the crash point."""


async def kill(world: World, fault: Fault) -> None:
    """SIGKILL it, and wait until it is back."""
    await asyncio.to_thread(world.stack.kill, fault.target)
    await _back(world, fault.target)


async def restart(world: World, fault: Fault) -> None:
    """Send it the signal of its restart, and wait until it is back."""
    pid = _pid(world, fault.target)
    await asyncio.to_thread(world.stack.signal, fault.target, _RESTARTS[fault.kind])
    async with asyncio.timeout(_BACK_WITHIN_S):
        while _is_alive(pid):
            await asyncio.sleep(_POLL_S)
    await _back(world, fault.target)


async def stop(world: World, fault: Fault) -> InForce:
    """Stop it, and start it again later."""
    try:
        await asyncio.to_thread(world.stack.stop, fault.target)
        return await lasting(fault)
    finally:
        with contextlib.suppress(UnhealthyError):
            await asyncio.to_thread(world.stack.start, fault.target)


async def freeze(world: World, fault: Fault) -> InForce:
    """SIGSTOP it with all its children, and let it run on later."""
    pid = _pid(world, fault.target)
    pids = [pid, *_children(pid)]
    try:
        _signal(pids, signal.SIGSTOP)
        in_force = await lasting(fault)
    finally:
        _signal(pids, signal.SIGCONT)
    await _back(world, fault.target)
    return in_force


async def crash(world: World, fault: Fault) -> None:
    """Arm a crash point, do what leads to it, and wait until who died there is back.

    Raises:
        NotReachedError: nobody passed it; it isn't armed any more.

    """
    assert fault.target in CRASH_POINTS
    armed = world.crash_folder / fault.target
    armed.touch()
    leading = asyncio.create_task(_lead_to(world, fault.target))
    try:
        async with asyncio.timeout(_REACHED_WITHIN_S):
            while armed.exists():
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise NotReachedError(fault.target) from None
    finally:
        armed.unlink(missing_ok=True)
        await leading
    service = fault.target.partition(".")[0].replace("_", "-")
    await _back(world, "edge-proxy" if service == "edge" else service)


async def _lead_to(world: World, point: str) -> None:
    """Do what makes the system pass a point that an ordinary request doesn't."""
    if point in {"edge.spooled", "edge.republished"}:
        # If no call was on its way just then, there is nothing to spool: once more.
        while (world.crash_folder / point).exists():
            await wire_trouble(world, Fault(Kind.REFUSE, "edge-proxy*>nats", _OUTLASTS_HAND_OFF_S))
            await asyncio.sleep(_REPUBLISHED_WITHIN_S)
    elif point in {"edge.inheriting", "edge.inherited"}:
        await asyncio.to_thread(world.stack.kill, "edge-proxy")
    elif point in {"tier_cache.read", "tier_cache.filled"}:
        async with world.valkey() as valkey:
            await valkey.flushall()


async def _back(world: World, name: str) -> None:
    """Return when it is ready again, or after long: then it is said in the end."""
    with contextlib.suppress(UnhealthyError):
        await asyncio.to_thread(world.stack.wait_ready, name, _BACK_WITHIN_S)


def _pid(world: World, program: str) -> int:
    """Return the process of a program.

    Raises:
        NotRunningError: it has none at the moment; 0 would mean ourselves to the kernel.

    """
    pid = next(status.pid for status in world.stack.status() if status.name == program)
    if not pid:
        raise NotRunningError(f"{program} is just being started")
    return pid


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except OSError:
        return []
    children = [int(child) for child in text.split()]
    return [*children, *(each for child in children for each in _children(child))]


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
