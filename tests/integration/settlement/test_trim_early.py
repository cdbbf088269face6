"""A stream that is nearly full forgets what is settled before its time, and nothing else ever."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from integration.bus import TIMEOUT_S
from integration.services import ServiceProcess
from integration.settlement.team import CallingTeam
from integration.settlement.upkeep import EARLY_SHARE, Upkeep, upkeep_of

from contracts.usage import Usage
from kit.bus.errors import BusError
from quotagate.stack import Stack
from settlement.domain.reading import Refusal, RefusalKind
from settlement.handlers.dead_letters import Undeliverable

# Some sixty records.
MAX_BYTES = 48 * 1024
BATCH = 5


@pytest.fixture
async def upkeep(second_stack: Stack) -> AsyncIterator[Upkeep]:
    async with upkeep_of(second_stack.servers) as upkeep:
        await upkeep.resize(MAX_BYTES)
        yield upkeep


@pytest.fixture
async def team(upkeep: Upkeep) -> CallingTeam:
    return await upkeep.world.open_team()


async def _is_nearly_full(upkeep: Upkeep) -> bool:
    return (await upkeep.stream.extent()).bytes > MAX_BYTES * EARLY_SHARE


async def _fill(upkeep: Upkeep, team: CallingTeam) -> list[int]:
    """Publish, store and acknowledge records until the stream is nearly full."""
    sequences: list[int] = []
    while not await _is_nearly_full(upkeep):
        sequences += await upkeep.store(team, *(team.record() for _ in range(BATCH)))
        await upkeep.deliver(BATCH)
    return sequences


async def _forgotten_early(upkeep: Upkeep) -> int:
    """Return how many sequences a round removes."""
    before = await upkeep.first()
    await upkeep.trim.tick()
    assert await upkeep.first() == before
    await upkeep.trim_early.tick()
    return await upkeep.first() - before


async def test_publishers_are_not_refused_while_settlement_keeps_up(
    upkeep: Upkeep, team: CallingTeam, second_stack: Stack, tmp_path: Path
) -> None:
    quick = {"QUOTAGATE_EARLY_TRIM_INTERVAL_S": "0.05", "QUOTAGATE_SETTLE_INTERVAL_S": "0.05"}
    process = ServiceProcess(second_stack.servers, "settlement", tmp_path, quick)
    try:
        await process.start_ready()
        published = 0
        # Four times what the stream may hold.
        while published < 240:
            await team.publish(*(team.record() for _ in range(BATCH)))
            published += BATCH
            async with asyncio.timeout(TIMEOUT_S):
                while await _is_nearly_full(upkeep):
                    await asyncio.sleep(0.01)
        async with asyncio.timeout(TIMEOUT_S):
            while len(await upkeep.world.books.charges(team.team_id)) < published:
                await asyncio.sleep(0.02)
        await process.becomes_more('quotagate_record_stream_trimmed_total{when="early"}')
        assert "replay window shortened" in process.log()
    finally:
        await process.stop()
    await upkeep.world.books.assert_they_add_up(team.team_id)


async def test_down_to_well_below_the_share_and_no_further(
    upkeep: Upkeep, team: CallingTeam
) -> None:
    sequences = await _fill(upkeep, team)
    await upkeep.settled_ago(0, *sequences)
    assert await _forgotten_early(upkeep) > 0
    held_bytes = (await upkeep.stream.extent()).bytes
    assert MAX_BYTES * 0.6 < held_bytes <= MAX_BYTES * 0.7
    assert await _forgotten_early(upkeep) == 0


async def test_what_waits_for_its_charge_stays(
    upkeep: Upkeep, team: CallingTeam, capsys: pytest.CaptureFixture[str]
) -> None:
    sequences = await _fill(upkeep, team)
    await upkeep.settled_ago(0, *sequences[:2], *sequences[3:])
    assert await _forgotten_early(upkeep) == 2
    assert "nearly full of what is not settled" in capsys.readouterr().out
    assert await _forgotten_early(upkeep) == 0


async def test_what_was_not_acknowledged_stays(upkeep: Upkeep, team: CallingTeam) -> None:
    (unread,) = await upkeep.store(team, team.record())
    while not await _is_nearly_full(upkeep):
        await upkeep.store(team, *(team.record() for _ in range(BATCH)))
    extent = await upkeep.stream.extent()
    await upkeep.settled_ago(0, *range(unread, extent.last + 1))
    assert await _forgotten_early(upkeep) == 0


async def test_what_is_held_or_has_no_usage_goes_with_the_settled(
    upkeep: Upkeep, team: CallingTeam
) -> None:
    held = team.record(usage=Usage(output=2**63 - 1))
    await upkeep.store(team, held, team.record(usage=None))
    await upkeep.deliver(2)
    await upkeep.settled_ago(0, *await _fill(upkeep, team))
    assert await _forgotten_early(upkeep) > 2
    assert await upkeep.world.books.held_reasons(team.team_id) == ["absurd_usage"]


async def test_repetitions_and_dead_letters_go(upkeep: Upkeep, team: CallingTeam) -> None:
    record = team.record()
    (stored,) = await upkeep.store(team, record)
    await team.publish(record)
    await team.publish_raw(b"no record")
    (refused,) = await team.publish(team.record())
    await upkeep.deliver(4)
    kept = Undeliverable(refused, "a subject", b"a record")
    await upkeep.dead_letters.keep(kept, Refusal(RefusalKind.REFUSED, "by the database"))
    await upkeep.settled_ago(0, stored, *await _fill(upkeep, team))
    assert await _forgotten_early(upkeep) > 4


async def test_what_a_restored_database_lacks_stays(upkeep: Upkeep, team: CallingTeam) -> None:
    sequences = await upkeep.store(team, team.record())
    # Acknowledged, but the database doesn't have it any more.
    (lost,) = await team.publish(team.record())
    await upkeep.deliver(2)
    await upkeep.settled_ago(0, *sequences, *await _fill(upkeep, team))
    assert await _forgotten_early(upkeep) == 1
    assert await upkeep.first() == lost


async def test_nothing_goes_while_a_message_waits_to_become_a_dead_letter(
    upkeep: Upkeep, team: CallingTeam
) -> None:
    (given_up,) = await upkeep.store(team, team.record())
    await upkeep.exhaust()
    await upkeep.settled_ago(0, given_up, *await _fill(upkeep, team))
    assert await _forgotten_early(upkeep) == 0
    await upkeep.handle_advisories()
    assert await _forgotten_early(upkeep) > 0


async def test_a_stream_made_smaller_than_it_is_drops_nothing_and_refuses_until_it_was_trimmed(
    upkeep: Upkeep, team: CallingTeam
) -> None:
    sequences = await _fill(upkeep, team)
    await upkeep.resize(MAX_BYTES // 2)
    assert await upkeep.first() == sequences[0]
    with pytest.raises(BusError):
        await team.publish(team.record())
    await upkeep.settled_ago(0, *sequences)
    assert await _forgotten_early(upkeep) > 0
    await team.publish(team.record())
