"""Accounts: every digit is kept, every move has its entry and its event."""

import asyncio
import json
from decimal import Decimal

import httpx
import pytest
from integration.control_plane.opened import Json, credit, open_team, refused, told
from integration.tables.rows import new_name
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine


async def ledger(operator: httpx.AsyncClient, team_id: str) -> list[Json]:
    page = await told(operator.get(f"/teams/{team_id}/ledger"))
    entries: list[Json] = page["items"]
    return entries


@pytest.mark.parametrize(
    ("amount", "told_amount"),
    [
        ("10", "10"),
        ("10.00", "10"),
        ("0.000000000000000000000000000001", "0.000000000000000000000000000001"),
        ("1234567890.123456789012345678901234567891", "1234567890.123456789012345678901234567891"),
        ("9000000000", "9000000000"),
    ],
)
async def test_a_credit_is_exact(
    operator: httpx.AsyncClient, amount: str, told_amount: str
) -> None:
    team_id = await open_team(operator)
    entry = await credit(operator, team_id, amount)
    assert (entry["amount"], entry["balance_after"]) == (told_amount, told_amount)
    assert (entry["direction"], entry["reason"]) == ("CREDIT", "CREDIT")
    assert entry["account_version"] == 1
    account = await told(operator.get(f"/teams/{team_id}/account"))
    assert (account["balance"], account["version"]) == (told_amount, 1)


@pytest.mark.parametrize(
    ("amount", "direction", "size", "balance"),
    [
        ("2.5", "CREDIT", "2.5", "2.5"),
        ("-2.5", "DEBIT", "2.5", "-2.5"),
        (
            "-1234567890.123456789012345678901234567891",
            "DEBIT",
            "1234567890.123456789012345678901234567891",
            "-1234567890.123456789012345678901234567891",
        ),
    ],
)
async def test_an_adjustment_goes_either_way(
    operator: httpx.AsyncClient, amount: str, direction: str, size: str, balance: str
) -> None:
    team_id = await open_team(operator)
    new = {"amount": amount, "reason": "Correction", "reference": "T-1"}
    entry = await told(operator.post(f"/teams/{team_id}/adjustments", json=new), 201)
    assert (entry["direction"], entry["reason"]) == (direction, "ADJUSTMENT")
    assert (entry["amount"], entry["balance_after"]) == (size, balance)
    assert (entry["note"], entry["reference"]) == ("Correction", "T-1")
    event = await told(operator.get(f"/events/{entry['event_id']}"))
    assert event["message"]["amount_usd"] == amount
    assert event["message"]["balance_usd"] == balance


@pytest.mark.parametrize("path", ["credits", "adjustments"])
@pytest.mark.parametrize(
    ("changed", "code", "field"),
    [
        pytest.param({"amount": 10}, "invalid_value", "amount", id="an integer"),
        pytest.param({"amount": 0.1}, "invalid_value", "amount", id="a binary fraction"),
        pytest.param({"amount": None}, "invalid_value", "amount", id="null"),
        pytest.param({"amount": "0"}, "invalid_value", "amount", id="nothing"),
        pytest.param({"amount": "-0.00"}, "invalid_value", "amount", id="less than nothing"),
        pytest.param({"amount": "1e3"}, "invalid_value", "amount", id="an exponent"),
        pytest.param({"amount": "NaN"}, "invalid_value", "amount", id="not a number"),
        pytest.param({"amount": "Infinity"}, "invalid_value", "amount", id="infinity"),
        pytest.param({"amount": "1,50"}, "invalid_value", "amount", id="a comma"),
        pytest.param({"amount": " 1"}, "invalid_value", "amount", id="a space"),
        pytest.param({"amount": "1\n"}, "invalid_value", "amount", id="a line break"),
        pytest.param({"amount": "١"}, "invalid_value", "amount", id="another script's digit"),
        pytest.param({"amount": "1_0"}, "invalid_value", "amount", id="an underscore"),
        pytest.param({"amount": "+1"}, "invalid_value", "amount", id="a plus sign"),
        pytest.param({"amount": "01"}, "invalid_value", "amount", id="a leading zero"),
        pytest.param({"amount": ".5"}, "invalid_value", "amount", id="no digit before the point"),
        pytest.param({"amount": "9000000001"}, "invalid_value", "amount", id="beyond the cache"),
        pytest.param({"amount": "9" * 30}, "invalid_value", "amount", id="thirty digits"),
        pytest.param({"reason": ""}, "invalid_value", "reason", id="no reason"),
        pytest.param({"currency": "EUR"}, "unknown_field", "currency", id="another currency"),
    ],
)
async def test_impossible_amounts_are_refused_and_move_nothing(
    operator: httpx.AsyncClient, path: str, changed: Json, code: str, field: str
) -> None:
    team_id = await open_team(operator)
    new = {"amount": "1", "reason": "Paid in"} | changed
    await refused(operator.post(f"/teams/{team_id}/{path}", json=new), 422, code, field)
    assert await ledger(operator, team_id) == []


async def test_a_credit_is_above_zero(operator: httpx.AsyncClient) -> None:
    new = {"amount": "-1", "reason": "Taken out"}
    post = operator.post(f"/teams/{await open_team(operator)}/credits", json=new)
    await refused(post, 422, "invalid_value", "amount")


async def test_a_balance_stays_within_what_the_cache_can_hold(operator: httpx.AsyncClient) -> None:
    team_id = await open_team(operator)
    await credit(operator, team_id, "9000000000")
    new = {"amount": "0.01", "reason": "One cent more"}
    await refused(
        operator.post(f"/teams/{team_id}/credits", json=new), 422, "invalid_value", "amount"
    )
    account = await told(operator.get(f"/teams/{team_id}/account"))
    assert (account["balance"], account["version"]) == ("9000000000", 1)


async def test_the_ledger_adds_up_under_many_writers(operator: httpx.AsyncClient) -> None:
    team_id = await open_team(operator)
    amounts = [f"{'-' if n % 3 == 0 else ''}{n}.{n:03}" for n in range(1, 31)]
    posts = [
        operator.post(f"/teams/{team_id}/adjustments", json={"amount": amount, "reason": "r"})
        for amount in amounts
    ]
    assert {answer.status_code for answer in await asyncio.gather(*posts)} == {201}
    entries = await ledger(operator, team_id)
    assert [entry["account_version"] for entry in entries] == list(range(30, 0, -1))
    account = await told(operator.get(f"/teams/{team_id}/account"))
    assert account["balance"] == entries[0]["balance_after"]
    assert Decimal(account["balance"]) == sum(map(Decimal, amounts))


async def test_the_event_of_a_credit_says_what_the_cache_needs(
    operator: httpx.AsyncClient,
) -> None:
    team_id = await open_team(operator)
    await credit(operator, team_id, "1.5")
    entry = await credit(operator, team_id, "0.25")
    event = await told(operator.get(f"/events/{entry['event_id']}"))
    assert event["subject"] == f"quota.v1.control.account.adjusted.{team_id}"
    message = event["message"]
    assert message.pop("changed_at_us") > 0
    assert message == {
        "team_id": team_id,
        "entry_id": str(entry["entry_id"]),
        "amount_usd": "0.25",
        "balance_usd": "1.75",
        "version": 2,
    }


async def test_numbers_in_the_bytes_of_an_answer_are_strings(operator: httpx.AsyncClient) -> None:
    team_id = await open_team(operator)
    await credit(operator, team_id, "10.50")
    raw = (await operator.get(f"/teams/{team_id}/ledger")).text
    floats: list[str] = []
    json.loads(raw, parse_float=floats.append)
    assert floats == []
    assert '"balance_after":"10.5"' in raw


async def test_an_account_that_somebody_holds_is_not_waited_for_for_ever(
    operator: httpx.AsyncClient, owner: AsyncEngine
) -> None:
    team_id = await open_team(operator)
    async with owner.connect() as somebody:
        await somebody.execute(
            text("SELECT FROM account WHERE team_id = :team FOR UPDATE"), {"team": team_id}
        )
        new = {"amount": "1", "reason": "r"}
        post = operator.post(f"/teams/{team_id}/credits", json=new)
        await refused(post, 503, "service_unavailable")
        await somebody.rollback()
    assert (await credit(operator, team_id))["account_version"] == 1


async def test_an_unknown_team_is_not_credited(operator: httpx.AsyncClient) -> None:
    new = {"amount": "1", "reason": "r"}
    await refused(operator.post(f"/teams/{new_name('t')}/credits", json=new), 404, "team_not_found")
