"""What happens at the front of the stream: messages given up are kept, settled ones go in time."""

import base64
from collections.abc import AsyncIterator

import pytest
from integration.settlement.upkeep import Upkeep, upkeep_of

from contracts.contract import encode
from quotagate.stack import Stack
from settlement.domain.classification import Pending
from settlement.store.records import Arrival


@pytest.fixture
async def upkeep(second_stack: Stack) -> AsyncIterator[Upkeep]:
    async with upkeep_of(second_stack.servers) as upkeep:
        yield upkeep


async def test_what_the_server_gave_up_becomes_a_dead_letter_and_stays_until_then(
    upkeep: Upkeep,
) -> None:
    team = await upkeep.world.open_team()
    lost, known = team.record(), team.record()
    (first,) = await team.publish(lost)
    (stored,) = await team.publish(known)
    await upkeep.records.insert([Arrival(known, stored, Pending())])
    await upkeep.exhaust()
    # Something later that is old enough to go, and would take the lost one along.
    (later,) = await upkeep.store(team, team.record())
    await upkeep.deliver(1)
    await upkeep.settled_ago(2, stored, later)
    await upkeep.trim.tick()
    assert await upkeep.first() == first

    await upkeep.handle_advisories()
    (letter,) = await team.dead_letters()
    assert letter.reason == "undelivered: delivered 2 times and never acknowledged"
    assert base64.b64decode(letter.payload_base64) == encode(lost)

    await upkeep.trim.tick()
    assert await upkeep.first() == later + 1


async def test_only_what_was_settled_before_the_window_is_removed(upkeep: Upkeep) -> None:
    team = await upkeep.world.open_team()
    sequences = await upkeep.store(team, *(team.record() for _ in range(6)))
    await upkeep.trim.tick()
    assert await upkeep.first() == sequences[0]

    await upkeep.deliver(4)
    await upkeep.trim.tick()
    assert await upkeep.first() == sequences[0]

    await upkeep.settled_ago(0, sequences[2])
    await upkeep.settled_ago(2, *sequences[:2], sequences[3], sequences[4])
    await upkeep.trim.tick()
    assert await upkeep.first() == sequences[2]

    await upkeep.settled_ago(2, sequences[2])
    await upkeep.trim.tick()
    # The fifth is settled, but the stream doesn't know yet that it was consumed.
    assert await upkeep.first() == sequences[4]

    await upkeep.deliver(2)
    await upkeep.trim.tick()
    # The sixth waits for its charge.
    assert await upkeep.first() == sequences[5]
