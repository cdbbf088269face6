"""Records: told with usage by class, outcome, state and charge."""

from decimal import Decimal

import httpx
from integration.control_plane.opened import open_team, refused, told
from integration.tables.rows import add_price, add_record, new_name, settle_one
from sqlalchemy.ext.asyncio import AsyncEngine


async def test_a_settled_record_is_told_with_its_charge(
    operator: httpx.AsyncClient, settlement: AsyncEngine, owner: AsyncEngine
) -> None:
    team_id, price_id = await open_team(operator), await add_price(owner)
    amount_usd = Decimal("0.000010000000000000001")
    entry = await settle_one(settlement, team_id, price_id, amount_usd)
    (record,) = (await told(operator.get(f"/teams/{team_id}/records")))["items"]
    assert (record["state"], record["outcome"]) == ("SETTLED", "succeeded")
    assert record["usage"] == {
        "input": 10,
        "cache_read": 0,
        "cache_write_5m": 0,
        "cache_write_1h": 0,
        "output": 0,
        "reasoning": 0,
    }
    charge = record["charge"]
    assert charge["amount"] == "0.000010000000000000001"
    assert charge["price_id"] == str(price_id)
    assert charge["ledger_entry_id"] == entry.entry_id
    (ledger,) = (await told(operator.get(f"/teams/{team_id}/ledger")))["items"]
    assert (ledger["entry_id"], ledger["reason"]) == (entry.entry_id, "USAGE")
    account = await told(operator.get(f"/teams/{team_id}/account"))
    assert account["balance"] == "-0.000010000000000000001"


async def test_unknown_usage_is_null_and_not_zero(
    operator: httpx.AsyncClient, settlement: AsyncEngine
) -> None:
    team_id = await open_team(operator)
    none = {
        f"{name}_tokens": None
        for name in (
            "input",
            "cache_read",
            "cache_write_5m",
            "cache_write_1h",
            "output",
            "reasoning",
        )
    }
    await add_record(
        settlement, team_id, state="UNBILLABLE", usage_source="missing", outcome="failed", **none
    )
    (record,) = (await told(operator.get(f"/teams/{team_id}/records")))["items"]
    assert (record["usage"], record["charge"], record["state"]) == (None, None, "UNBILLABLE")


async def test_attempts_of_one_inference(
    operator: httpx.AsyncClient, settlement: AsyncEngine, owner: AsyncEngine
) -> None:
    team_id, price_id = await open_team(operator), await add_price(owner)
    await settle_one(settlement, team_id, price_id, Decimal("0.5"))
    (settled,) = (await told(operator.get(f"/teams/{team_id}/records")))["items"]
    inference_id = settled["inference_id"]
    await add_record(settlement, team_id, inference_id=inference_id, attempt_no=2)
    await add_record(settlement, team_id)
    inference = await told(operator.get(f"/teams/{team_id}/records/{inference_id}"))
    assert [attempt["attempt_no"] for attempt in inference["attempts"]] == [1, 2]
    assert inference["attempts"][0] == settled
    assert inference["attempts"][1]["charge"] is None
    assert inference["charged"] == "0.5"


async def test_another_teams_inference_is_not_told(
    operator: httpx.AsyncClient, settlement: AsyncEngine
) -> None:
    mine, other, inference_id = await open_team(operator), await open_team(operator), new_name("i")
    await add_record(settlement, other, inference_id=inference_id)
    get = operator.get(f"/teams/{mine}/records/{inference_id}")
    await refused(get, 404, "record_not_found")
    assert (await told(operator.get(f"/teams/{mine}/records")))["items"] == []


async def test_records_by_state(operator: httpx.AsyncClient, settlement: AsyncEngine) -> None:
    team_id = await open_team(operator)
    await add_record(settlement, team_id)
    held = await add_record(settlement, team_id, state="HELD", held_reason="absurd usage")
    (record,) = (await told(operator.get(f"/teams/{team_id}/records?state=HELD")))["items"]
    assert (record["record_id"], record["held_reason"]) == (held, "absurd usage")
    get = operator.get(f"/teams/{team_id}/records?state=LOST")
    await refused(get, 422, "invalid_value", "state")
