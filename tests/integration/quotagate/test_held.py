"""Held records are listed, released and written off; who decided what and why is kept."""

import uuid
from typing import Any

import pytest
from integration.quotagate.command import Answer, run_command
from integration.quotagate.scratch import Scratch
from integration.tables.rows import add_record
from pydantic import SecretStr
from sqlalchemy import text

from quotagate import stores
from quotagate.held import Decided, holding, release, write_off
from quotagate.stores import CannotTellError
from quotagate.verify import Options, verify

ABSURD = 2**63 - 1
# The true books have a held record of another team.
TEAM = "holding"


async def _hold(scratch: Scratch, reason: str, **changes: Any) -> int:
    return await add_record(
        scratch.engine("settlement"), TEAM, state="HELD", held_reason=reason, **changes
    )


async def _rows(scratch: Scratch, query: str) -> list[tuple[Any, ...]]:
    async with stores.database(scratch.settings) as engine, engine.connect() as connection:
        return [tuple(row) for row in await connection.execute(text(query))]


async def _state(scratch: Scratch, record_id: int) -> tuple[Any, ...]:
    query = "SELECT record_id, state, held_reason, price_id FROM inference_record"
    states = {row[0]: row[1:] for row in await _rows(scratch, query)}
    return states[record_id]


@pytest.fixture
async def late_price(scratch: Scratch) -> str:
    """The price of a model, in effect for an hour, that no record names."""
    await scratch.run(
        "INSERT INTO price VALUES (DEFAULT, 'fake', 'late', 1, 1, 1, 1, 1, 1,"
        " now() - interval '1 hour')"
    )
    (row,) = await _rows(scratch, "SELECT CAST(price_id AS text) FROM price WHERE model = 'late'")
    price_id: str = row[0]
    return price_id


async def test_what_is_held_is_listed_with_the_price_that_was_in_effect(
    scratch: Scratch, late_price: str
) -> None:
    absurd = await _hold(scratch, "absurd_usage", output_tokens=ABSURD, input_tokens=ABSURD)
    unpriced = await _hold(scratch, "missing_price", model_sent="late")
    early = await _hold(
        scratch, "missing_price", model_sent="late", started_at=text("now() - interval '1 day'")
    )
    found = await holding(scratch.settings, team_id=TEAM, reason=None, listed=50)
    assert found.counts == {"absurd_usage": 1, "missing_price": 2}
    assert [(held.record_id, held.tokens, held.price_then) for held in found.records] == [
        (absurd, 2 * ABSURD, None),
        (unpriced, 10, late_price),
        (early, 10, None),
    ]
    of_reason = await holding(scratch.settings, team_id=TEAM, reason="absurd_usage", listed=0)
    assert (of_reason.counts, of_reason.records) == ({"absurd_usage": 1}, [])
    nobody = await holding(scratch.settings, team_id="nobody", reason=None, listed=50)
    assert nobody.counts == {}


async def test_released_records_wait_for_their_charge(scratch: Scratch) -> None:
    first, second = await _hold(scratch, "absurd_usage"), await _hold(scratch, "unknown_team")
    pending = await add_record(scratch.engine("settlement"), TEAM)
    decided = await release(scratch.settings, [second, first, pending, 10**9], "it is right")
    assert decided == Decided((first, second), (pending, 10**9))
    assert await _state(scratch, first) == ("PENDING", None, None)
    assert await _rows(
        scratch,
        "SELECT record_id, decision, held_reason, price_id, note FROM record_decision ORDER BY 1",
    ) == [
        (first, "RELEASED", "absurd_usage", None, "it is right"),
        (second, "RELEASED", "unknown_team", None, "it is right"),
    ]
    again = await release(scratch.settings, [first], "once more")
    assert again == Decided((), (first,))


async def test_a_record_released_with_a_price_names_that_one(
    scratch: Scratch, late_price: str
) -> None:
    record_id = await _hold(scratch, "missing_price", model_sent="late", price_id="gold")
    price = (await holding(scratch.settings, team_id=TEAM, reason=None, listed=1)).records[0]
    assert (price.price_id, price.price_then) == ("gold", late_price)
    await release(scratch.settings, [record_id], "priced late", uuid.UUID(late_price))
    assert await _state(scratch, record_id) == ("PENDING", None, late_price)
    assert await _rows(
        scratch, "SELECT observed_price_id, CAST(price_id AS text) FROM record_decision"
    ) == [("gold", late_price)]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"model_sent": "another"}, id="of another model"),
        pytest.param({"model_sent": None}, id="of a model that the record doesn't name"),
        pytest.param({"model_sent": "late", "provider": "another"}, id="of another provider"),
        pytest.param(
            {"model_sent": "late", "started_at": text("now() - interval '2 hours'")},
            id="not in effect yet",
        ),
    ],
)
async def test_a_price_that_was_not_in_effect_for_one_of_them_releases_none(
    scratch: Scratch, late_price: str, changes: dict[str, Any]
) -> None:
    fitting = await _hold(scratch, "missing_price", model_sent="late")
    other = await _hold(scratch, "missing_price", **changes)
    with pytest.raises(CannotTellError, match=f"the model of record {other} when it started"):
        await release(scratch.settings, [fitting, other], "a note", uuid.UUID(late_price))
    assert await _state(scratch, fitting) == ("HELD", "missing_price", None)
    assert await _rows(scratch, "SELECT * FROM record_decision") == []


async def test_a_record_that_is_written_off_is_no_hole_in_the_books(scratch: Scratch) -> None:
    record_id = await _hold(scratch, "absurd_usage", output_tokens=ABSURD)
    await write_off(scratch.settings, [record_id], "the provider's mistake")
    assert await _state(scratch, record_id) == ("WRITTEN_OFF", None, None)
    options = Options(with_cache=False, with_stream=False)
    report = await verify(scratch.settings, options)
    assert (report.counts, report.figures["written_off"]) == ({}, 1)
    assert await release(scratch.settings, [record_id], "a note") == Decided((), (record_id,))


async def test_a_decision_stays(scratch: Scratch) -> None:
    await write_off(scratch.settings, [await _hold(scratch, "absurd_usage")], "a note")
    for statement in ("UPDATE record_decision SET note = 'x'", "DELETE FROM record_decision"):
        with pytest.raises(CannotTellError, match="written once"):
            await _rows(scratch, statement)


async def test_no_service_may_decide(scratch: Scratch) -> None:
    for role in ("settlement", "control_plane"):
        settings = scratch.settings.model_copy(
            update={"database_url": SecretStr(scratch.url(f"quotagate_{role}"))}
        )
        with pytest.raises(CannotTellError, match="permission denied"):
            await release(settings, [1], "a note")


async def test_the_command(scratch: Scratch) -> None:
    environment = {"QUOTAGATE_DATABASE_URL": scratch.url("quotagate")}
    record_id = await _hold(scratch, "missing_price")

    async def answer(*arguments: str) -> Answer:
        return await run_command("held", *arguments, environment=environment)

    listed = await answer("list", "--team", TEAM)
    assert listed.status == 1
    assert f" {record_id} " in listed.out.splitlines()[1]
    in_json = await answer("list", "--team", TEAM, "--json")
    assert in_json.json["counts"] == {"missing_price": 1}
    assert [held["record_id"] for held in in_json.json["held"]] == [record_id]
    released = await answer("release", str(record_id), "--note", "why")
    assert (released.status, released.out) == (0, "1 released.\n")
    written_off = await answer("write-off", str(record_id), "--note", "why")
    assert (written_off.status, written_off.out) == (
        1,
        f"0 written off.\nRecord {record_id} is not held; nothing was done about it.\n",
    )
    assert (await answer("list", "--team", TEAM)).out == "None.\n"
    unexplained = await answer("release", str(record_id), "--note", " ")
    assert (unexplained.status, unexplained.out) == (2, "")
    assert "say why" in unexplained.err
