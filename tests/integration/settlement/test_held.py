"""What can't be charged is held, stops nobody else, and is charged once a person says so."""

import uuid
from decimal import Decimal

import pytest
from integration.settlement.books import Books
from integration.settlement.settling import NEVER, store
from integration.settlement.team import CallingTeam
from integration.settlement.world import World
from integration.tables.rows import new_name

from contracts.usage import Usage
from kit.ids import new_id
from quotagate.held import release, write_off
from quotagate.stack import Servers
from quotagate.stores import of_servers
from settlement.handlers.settle import Settle
from settlement.store.records import RecordStore


@pytest.mark.parametrize(
    ("price_id", "reason"),
    [
        pytest.param(new_id(), "missing_price", id="a price that doesn't exist"),
        pytest.param("gold", "missing_price", id="a price id that is none"),
        pytest.param(None, "missing_price", id="no price"),
    ],
)
async def test_a_record_without_a_price_is_held_and_the_others_are_charged(
    price_id: str | None,
    reason: str,
    team: CallingTeam,
    records: RecordStore,
    settle: Settle,
    books: Books,
) -> None:
    await store(records, team.record(), team.record(price_id=price_id), team.record())
    await settle.once_around(NEVER)
    assert sorted((await books.states(team.team_id)).values()) == ["HELD", "SETTLED", "SETTLED"]
    assert await books.held_reasons(team.team_id) == [reason]
    await books.assert_they_add_up(team.team_id)


async def test_absurd_usage_is_held(
    team: CallingTeam, records: RecordStore, settle: Settle, books: Books
) -> None:
    await store(records, team.record(usage=Usage(output=2**63 - 1)), team.record())
    await settle.once_around(NEVER)
    assert await books.held_reasons(team.team_id) == ["absurd_usage"]
    assert await books.charges(team.team_id) == [Decimal("0.001")]


async def test_records_of_a_team_that_does_not_exist_are_held(
    team: CallingTeam, records: RecordStore, settle: Settle, books: Books
) -> None:
    nobody = new_name("team")
    await store(records, team.record(team_id=nobody), team.record())
    await settle.once_around(NEVER)
    assert await books.held_reasons(nobody) == ["unknown_team"]
    assert await books.charges(team.team_id) == [Decimal("0.001")]


async def _held(books: Books, team: CallingTeam) -> list[int]:
    return [row["record_id"] for row in await books.records(team.team_id) if row["held_reason"]]


async def test_a_record_released_without_a_price_is_held_again(
    team: CallingTeam, records: RecordStore, settle: Settle, books: Books, servers: Servers
) -> None:
    await store(records, team.record(price_id=None), team.record())
    await release(of_servers(servers), await _held(books, team), "try again")
    await settle.once_around(NEVER)
    assert await books.held_reasons(team.team_id) == ["missing_price"]
    assert await books.charges(team.team_id) == [Decimal("0.001")]


async def test_a_record_released_with_a_price_is_charged_by_that_one(
    team: CallingTeam,
    records: RecordStore,
    settle: Settle,
    world: World,
    books: Books,
    servers: Servers,
) -> None:
    model = new_name("model")
    price_id = await world.desk.add_price(model, "'2020-01-01'", input="3")
    await store(records, team.record(price_id=None, model_sent=model))
    held = await _held(books, team)
    await release(of_servers(servers), held, "it was priced late", uuid.UUID(price_id))
    await settle.once_around(NEVER)
    assert await books.charges(team.team_id) == [Decimal("0.003")]
    await books.assert_they_add_up(team.team_id)


async def test_what_is_written_off_is_never_charged(
    team: CallingTeam, records: RecordStore, settle: Settle, books: Books, servers: Servers
) -> None:
    await store(records, team.record(usage=Usage(output=2**63 - 1)), team.record())
    await write_off(of_servers(servers), await _held(books, team), "the provider's mistake")
    await settle.once_around(NEVER)
    assert sorted((await books.states(team.team_id)).values()) == ["SETTLED", "WRITTEN_OFF"]
    assert await books.charges(team.team_id) == [Decimal("0.001")]
    await books.assert_they_add_up(team.team_id)
