"""Stores that forget, fill up, or hear of things too late."""

import asyncio

from faults.scene import Scene
from faults.strikes.fault import Fault, wires
from faults.wiring import Trouble
from faults.world import World
from nats.js.api import StreamConfig

from contracts.inference import INFERENCE_RECORDS

_HEARD_WITHIN_S = 1.5
_REFRESHES_S = 2.5
# Two of them are far below a call's time-out.
_APART_S = 0.03


async def flush(world: World, _fault: Fault) -> None:
    """Empty Valkey."""
    async with world.valkey() as valkey:
        await valkey.flushall()


async def forget_scripts(world: World, _fault: Fault) -> None:
    """Have Valkey forget every script, as another node would after a failover."""
    async with world.valkey() as valkey:
        await valkey.script_flush()


async def late_fill(scene: Scene) -> None:
    """Have fills arrive that read the database before a change which the cache has heard of.

    One tier-cache's way to Valkey is held, so that its fills are late. Then teams change that
    nobody else asks about, and the other one hears of it: it evicts what isn't there, and nothing
    fills it anew.
    """
    world, held, deaf = scene.world, "tier-cache>valkey", "tier-cache>nats"
    idle = [team for team in scene.teams if team.kind == "idle"]
    # A tier-cache that another fault has only just let go of fills nothing.
    await asyncio.to_thread(world.stack.wait_ready, "tier-cache")
    async with world.valkey() as valkey:
        try:
            for trouble in (Trouble(delay_s=_APART_S), Trouble(hold_requests=True)):
                # The first time all arrive, so slowly that batches don't share a connection: the
                # next ones find several that are open, and are held on those.
                await world.wiring.begin(held, trouble)
                await valkey.flushall()
                await asyncio.gather(*(scene.clients.ask(team) for team in idle))
            await world.wiring.begin(deaf, Trouble(refuse=True))
            await scene.office.change(idle)
            await asyncio.sleep(_HEARD_WITHIN_S)
        finally:
            await world.wiring.end(held)
            await world.wiring.end(deaf)


async def late_refresh(world: World, _fault: Fault) -> None:
    """Have one settlement's word to the cache arrive after the other one has settled more."""
    held = wires("settlement>valkey")[0]
    try:
        await world.wiring.begin(held, Trouble(hold_requests=True))
        await asyncio.sleep(_REFRESHES_S)
    finally:
        await world.wiring.end(held)


async def stream_full(world: World, fault: Fault) -> None:
    """Leave no room in the stream of records, for a while, whatever else its configuration says.

    Settlement is told nothing: what it hasn't taken yet must still be there afterwards.
    """
    settlements = wires("settlement*>nats")
    before = await _stream(world)
    async with world.nats() as client:
        state = (await client.jetstream().stream_info(INFERENCE_RECORDS.name)).state
    try:
        for name in settlements:
            await world.wiring.begin(name, Trouble(hold_requests=True, hold_replies=True))
        await asyncio.sleep(fault.duration_s / 2)
        await _update(world, before.evolve(max_bytes=max(1, state.bytes)))
        await asyncio.sleep(fault.duration_s / 2)
    finally:
        for name in settlements:
            await world.wiring.end(name)
        await _restore(world, before)


async def disk_full(world: World, fault: Fault) -> None:
    """Leave no room for spool and journals, while the edges can't reach the stream."""
    edges = wires("edge-proxy*>nats")
    with world.disk.full():
        try:
            for name in edges:
                await world.wiring.begin(name, Trouble(lose_requests=True, lose_replies=True))
            await asyncio.sleep(fault.duration_s)
        finally:
            for name in edges:
                await world.wiring.end(name)


async def _stream(world: World) -> StreamConfig:
    async with world.nats() as client:
        return (await client.jetstream().stream_info(INFERENCE_RECORDS.name)).config


async def _update(world: World, config: StreamConfig) -> None:
    async with world.nats() as client:
        await client.jetstream().update_stream(config)


async def _restore(world: World, config: StreamConfig) -> None:
    """Bring the configuration back, however long the server takes to listen."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await _update(world, config)
            except Exception:  # noqa: BLE001 - whatever it is: a stream that stays full is no run
                await asyncio.sleep(0.2)
