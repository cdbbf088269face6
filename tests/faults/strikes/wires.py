"""Wires that are cut, slow, silent or closed."""

from faults.strikes.fault import Fault, InForce, Kind, lasting, wires
from faults.wiring import Trouble
from faults.world import World

_DELAY_S = 0.12

_TROUBLES = {
    Kind.DELAY: Trouble(delay_s=_DELAY_S),
    Kind.HOLD: Trouble(hold_requests=True, hold_replies=True),
    Kind.HOLD_REQUESTS: Trouble(hold_requests=True),
    Kind.HOLD_REPLIES: Trouble(hold_replies=True),
    Kind.LOSE: Trouble(lose_requests=True, lose_replies=True),
    Kind.LOSE_REPLIES: Trouble(lose_replies=True),
    Kind.REFUSE: Trouble(refuse=True),
}


async def trouble(world: World, fault: Fault) -> InForce:
    """Make trouble on all wires that the target names, for a while."""
    names = wires(fault.target)
    try:
        for name in names:
            await world.wiring.begin(name, _TROUBLES[fault.kind])
        return await lasting(fault)
    finally:
        for name in names:
            await world.wiring.end(name)


async def cut(world: World, fault: Fault) -> None:
    """Reset all connections on the wires."""
    for name in wires(fault.target):
        await world.wiring.cut(name)
