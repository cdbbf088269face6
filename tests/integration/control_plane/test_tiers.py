"""Tiers: possible ones are kept, impossible ones refused with the name of the field."""

import asyncio

import httpx
import pytest
from integration.control_plane.opened import Json, open_tier, refused, told
from integration.tables.rows import new_name


async def test_a_tier_is_created_and_told(operator: httpx.AsyncClient) -> None:
    tier_id = new_name("tier")
    numbers = {"rpm": 20, "tpm": 100_000, "request_burst": 5, "token_burst": 1_000}
    made = await told(operator.put(f"/tiers/{tier_id}", json=numbers), 201)
    assert made | numbers == made
    assert made["version"] == 1
    del made["event_id"]
    assert await told(operator.get(f"/tiers/{tier_id}")) == made


async def test_new_numbers_raise_the_version_and_the_same_ones_do_nothing(
    operator: httpx.AsyncClient,
) -> None:
    tier_id = await open_tier(operator, rpm=60, token_burst=7)
    changed = await told(operator.put(f"/tiers/{tier_id}", json={"rpm": 90, "tpm": 60_000}))
    assert (changed["rpm"], changed["token_burst"], changed["version"]) == (90, 0, 2)
    again = await told(operator.put(f"/tiers/{tier_id}", json={"rpm": 90, "tpm": 60_000}))
    assert (again["version"], again["event_id"]) == (2, None)
    assert again["updated_at"] == changed["updated_at"]


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param({"rpm": 1, "tpm": 1}, id="the smallest"),
        pytest.param({"rpm": 60_000_000, "tpm": 10**12}, id="the largest"),
        pytest.param(
            {"rpm": 2, "tpm": 3, "request_burst": 2_880, "token_burst": 4_320}, id="a day"
        ),
    ],
)
async def test_possible_numbers(operator: httpx.AsyncClient, numbers: Json) -> None:
    await told(operator.put(f"/tiers/{new_name('tier')}", json=numbers), 201)


@pytest.mark.parametrize(
    ("changed", "code", "field"),
    [
        pytest.param({"rpm": 0}, "invalid_value", "rpm", id="no requests"),
        pytest.param({"tpm": 0}, "invalid_value", "tpm", id="no tokens"),
        pytest.param({"rpm": -1}, "invalid_value", "rpm", id="fewer than no requests"),
        pytest.param({"rpm": 60_000_001}, "invalid_value", "rpm", id="more than one each µs"),
        pytest.param({"tpm": 10**12 + 1}, "invalid_value", "tpm", id="absurdly many tokens"),
        pytest.param({"rpm": 10**40}, "invalid_value", "rpm", id="a number beyond 64 bits"),
        pytest.param({"rpm": "60"}, "invalid_value", "rpm", id="a string"),
        pytest.param({"rpm": 60.0}, "invalid_value", "rpm", id="a fraction"),
        pytest.param({"rpm": True}, "invalid_value", "rpm", id="a truth"),
        pytest.param({"rpm": None}, "invalid_value", "rpm", id="null"),
        pytest.param({"request_burst": -1}, "invalid_value", "request_burst", id="negative burst"),
        pytest.param({"token_burst": -1}, "invalid_value", "token_burst", id="negative tokens"),
        pytest.param(
            {"request_burst": 86_401}, "invalid_value", "request_burst", id="over a day of requests"
        ),
        pytest.param(
            {"token_burst": 86_400_001}, "invalid_value", "token_burst", id="over a day of tokens"
        ),
        pytest.param({"rph": 60}, "unknown_field", "rph", id="a limit there isn't"),
        pytest.param({"version": 7}, "unknown_field", "version", id="a version of one's own"),
    ],
)
async def test_impossible_numbers_are_refused_by_name(
    operator: httpx.AsyncClient, changed: Json, code: str, field: str
) -> None:
    tier_id = new_name("tier")
    put = operator.put(f"/tiers/{tier_id}", json={"rpm": 60, "tpm": 60_000} | changed)
    assert field in await refused(put, 422, code, field)
    await refused(operator.get(f"/tiers/{tier_id}"), 404, "tier_not_found")


@pytest.mark.parametrize("missing", ["rpm", "tpm"])
async def test_a_missing_number_is_named(operator: httpx.AsyncClient, missing: str) -> None:
    numbers = {"rpm": 60, "tpm": 60_000}
    del numbers[missing]
    put = operator.put(f"/tiers/{new_name('tier')}", json=numbers)
    await refused(put, 422, "missing_field", missing)


async def test_several_problems_are_told_at_once(operator: httpx.AsyncClient) -> None:
    put = operator.put(f"/tiers/{new_name('tier')}", json={"rpm": 0, "tpm": "x", "y": 1})
    message = await refused(put, 422, "invalid_value", "rpm")
    assert all(f"{field}: " in message for field in ("rpm", "tpm", "y"))


async def test_many_writers_of_one_tier_take_turns(operator: httpx.AsyncClient) -> None:
    tier_id = new_name("tier")
    put = [operator.put(f"/tiers/{tier_id}", json={"rpm": n, "tpm": 9}) for n in range(1, 11)]
    answers = await asyncio.gather(*put)
    assert sorted(answer.status_code for answer in answers) == [200] * 9 + [201]
    assert sorted(answer.json()["version"] for answer in answers) == list(range(1, 11))
    assert all(answer.json()["event_id"] for answer in answers)
