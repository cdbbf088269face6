"""Tiers: possible ones are kept, impossible ones refused with the name of the field."""

import asyncio
import json
from decimal import Decimal
from pathlib import Path

import httpx
import msgspec
import pytest
from integration.bus import bus_of
from integration.control_plane.opened import Json, open_tier, pages, refused, told
from integration.services import ServiceProcess
from integration.tables.rows import new_name
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from contracts.admission import Policy, TokenWeights
from contracts.cache import POLICIES, PoliciesRequest
from quotagate.stack import Servers


async def test_a_tier_is_created_and_told(operator: httpx.AsyncClient) -> None:
    tier_id = new_name("tier")
    numbers = {"rpm": 20, "tpm": 100_000, "request_burst": 5, "token_burst": 1_000}
    made = await told(operator.put(f"/tiers/{tier_id}", json=numbers), 201)
    assert made | numbers == made
    assert made["version"] == 1
    del made["event_id"]
    assert await told(operator.get(f"/tiers/{tier_id}")) == made


FURTHER = {
    "input_tpm": 80_000,
    "output_tpm": 20_000,
    "input_token_burst": 8_000,
    "tpm_weights": {"cache_read": "0.10"},
    "max_concurrency": 5,
    "daily_requests": 1_000,
    "daily_tokens": 5_000_000,
    "time_zone": "Europe/Berlin",
    "key_rates": {"rpm": 10, "request_burst": 5},
    "model_rates": {"gpt-4o-mini": {"tpm": 50_000}},
    "spend_limits": [
        {"period": "day", "limit_usd": "25.00"},
        {"period": "month", "limit_usd": None, "thresholds": []},
        {"period": "month", "scope": "key", "limit_usd": "0.000000001", "mode": "soft"},
    ],
    "shadow": ["model_tokens", "day_requests", "day_spend"],
}


async def test_further_limits_are_told_and_reach_admission(
    operator: httpx.AsyncClient, servers: Servers, tmp_path: Path
) -> None:
    tier_id = new_name("tier")
    numbers = {"rpm": 20, "tpm": 100_000} | FURTHER
    made = await told(operator.put(f"/tiers/{tier_id}", json=numbers), 201)
    weights = dict.fromkeys(TokenWeights.__struct_fields__, "1") | {"cache_read": "0.1"}
    assert made["tpm_weights"] == weights
    unlimited = {"rpm": None, "request_burst": 0, "token_burst": 0}
    assert made["model_rates"] == {"gpt-4o-mini": {"tpm": 50_000} | unlimited}
    again = await told(operator.put(f"/tiers/{tier_id}", json=numbers))
    assert (again["version"], again["event_id"]) == (1, None)

    tier_cache = ServiceProcess(servers, "tier-cache", tmp_path)
    try:
        await tier_cache.start_ready()
        async with bus_of(servers, "admission") as bus:
            policies = (await bus.ask(POLICIES, PoliciesRequest())).policies
    finally:
        await tier_cache.stop()
    [policy] = [each for each in policies if each.tier_id == tier_id]
    assert policy == msgspec.convert({"tier_id": tier_id} | numbers, Policy)
    assert policy.tpm_weights == TokenWeights(cache_read=Decimal("0.1"))

    plain = await told(operator.put(f"/tiers/{tier_id}", json={"rpm": 20, "tpm": 100_000}))
    assert (plain["max_concurrency"], plain["shadow"], plain["time_zone"]) == (None, [], "UTC")


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        pytest.param({"input_tpm": "many"}, "input_tpm", id="no number"),
        pytest.param({"time_zone": "Europe/Nowhere"}, "time_zone", id="no such time zone"),
        pytest.param({"tpm_weights": {"input": "NaN"}}, "tpm_weights", id="no weight"),
        pytest.param({"key_rates": 7}, "key_rates", id="no rates"),
        pytest.param({"model_rates": {"a b": {"rpm": 1}}}, "model_rates", id="no model's name"),
        pytest.param(
            {"spend_limits": [{"period": "day", "limit_usd": "NaN"}]},
            "spend_limits",
            id="no amount",
        ),
    ],
)
async def test_a_tier_that_cannot_be_is_named_and_hides_no_other(
    operator: httpx.AsyncClient, owner: AsyncEngine, limits: Json, named: str
) -> None:
    good, bad = await open_tier(operator), await open_tier(operator, output_tpm=500)
    async with owner.begin() as connection:
        spoil = "UPDATE tier SET limits = limits || CAST(:limits AS jsonb) WHERE tier_id = :id"
        await connection.execute(text(spoil), {"id": bad, "limits": json.dumps(limits)})
    listed = {
        tier["tier_id"]: tier for page in await pages(operator, "/tiers", 200) for tier in page
    }
    assert listed[good]["problem"] is None
    assert named in listed[bad]["problem"]
    # The rest of it is told.
    assert (listed[bad]["rpm"], listed[bad]["output_tpm"]) == (60, 500)
    assert await told(operator.get(f"/tiers/{bad}")) == listed[bad]
    mended = await told(operator.put(f"/tiers/{bad}", json={"rpm": 60, "tpm": 60_000}))
    assert mended["problem"] is None


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
            {"rpm": 2, "tpm": 3, "request_burst": 2, "token_burst": 3},
            id="bursts of a minute",
        ),
        pytest.param(
            {"rpm": 2, "tpm": 3, "key_rates": {"rpm": 2, "tpm": 3}, "output_tpm": 3},
            id="parts that are the whole",
        ),
        pytest.param(
            {"rpm": 2, "tpm": 3, "key_rates": {"rpm": 9}, "shadow": ["requests"]},
            id="a part of what refuses nobody",
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
            {"request_burst": 61}, "invalid_value", "request_burst", id="a burst above rpm"
        ),
        pytest.param(
            {"token_burst": 60_001}, "invalid_value", "token_burst", id="a burst above tpm"
        ),
        pytest.param(
            {"token_burst": 10**40}, "invalid_value", "token_burst", id="a burst beyond 64 bits"
        ),
        pytest.param(
            {"input_tpm": 9, "input_token_burst": 10},
            "invalid_value",
            "input_token_burst",
            id="a burst above input_tpm",
        ),
        pytest.param(
            {"output_token_burst": 1},
            "invalid_value",
            "output_token_burst",
            id="a burst without output_tpm",
        ),
        pytest.param(
            {"key_rates": {"rpm": 2, "request_burst": 3}},
            "invalid_value",
            "key_rates.request_burst",
            id="a burst above a key's rpm",
        ),
        pytest.param(
            {"model_rates": {"m": {"rpm": 2, "token_burst": 1}}},
            "invalid_value",
            "model_rates.m.token_burst",
            id="a burst without a model's tpm",
        ),
        pytest.param(
            {"key_rates": {"rpm": 61}}, "invalid_value", "key_rates.rpm", id="a key above its team"
        ),
        pytest.param(
            {"key_rates": {"tpm": 60_001}},
            "invalid_value",
            "key_rates.tpm",
            id="a key's tokens above its team's",
        ),
        pytest.param(
            {"model_rates": {"m": {"tpm": 60_001}}},
            "invalid_value",
            "model_rates.m.tpm",
            id="a model above the team",
        ),
        pytest.param(
            {"input_tpm": 60_001}, "invalid_value", "input_tpm", id="input above all tokens"
        ),
        pytest.param(
            {"output_tpm": 60_001}, "invalid_value", "output_tpm", id="output above all tokens"
        ),
        pytest.param({"input_tpm": 0}, "invalid_value", "input_tpm", id="no input tokens"),
        pytest.param({"max_concurrency": 0}, "invalid_value", "max_concurrency", id="none at once"),
        pytest.param({"daily_requests": -1}, "invalid_value", "daily_requests", id="negative day"),
        pytest.param({"daily_tokens": 1.5}, "invalid_value", "daily_tokens", id="half a token"),
        pytest.param({"time_zone": "Mars/Base"}, "invalid_value", "time_zone", id="no such zone"),
        pytest.param({"time_zone": "../etc"}, "invalid_value", "time_zone", id="a path for a zone"),
        pytest.param({"shadow": ["tokens_"]}, "invalid_value", "shadow.0", id="no such reason"),
        pytest.param(
            {"shadow": ["concurrency"]}, "invalid_value", "shadow", id="shadow of no limit"
        ),
        pytest.param({"key_rates": {}}, "invalid_value", "key_rates", id="a key's no limits"),
        pytest.param({"key_rates": {"rpm": 0}}, "invalid_value", "key_rates.rpm", id="a key's 0"),
        pytest.param({"key_rates": {"rps": 1}}, "unknown_field", "key_rates.rps", id="a key's rps"),
        pytest.param(
            {"model_rates": {"m": {}}}, "invalid_value", "model_rates.m", id="a model's no limits"
        ),
        pytest.param(
            {"tpm_weights": {"input": 0.5}},
            "invalid_value",
            "tpm_weights.input",
            id="a weight as a binary fraction",
        ),
        pytest.param(
            {"tpm_weights": {"input": "-1"}},
            "invalid_value",
            "tpm_weights.input",
            id="a negative weight",
        ),
        pytest.param(
            {"tpm_weights": {"inputs": "1"}},
            "unknown_field",
            "tpm_weights.inputs",
            id="a class of tokens there isn't",
        ),
        pytest.param(
            {"tpm_weights": dict.fromkeys(TokenWeights.__struct_fields__, "0")},
            "invalid_value",
            "tpm_weights",
            id="no token counts",
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


DAY: Json = {"period": "day", "limit_usd": "5"}


@pytest.mark.parametrize(
    ("limits", "code", "field"),
    [
        pytest.param([DAY, DAY], "invalid_value", "spend_limits.1", id="the same twice"),
        pytest.param(
            [DAY | {"limit_usd": "-1"}], "invalid_value", "spend_limits.0.limit_usd", id="negative"
        ),
        pytest.param(
            [DAY | {"limit_usd": 5}], "invalid_value", "spend_limits.0.limit_usd", id="a number"
        ),
        pytest.param(
            [DAY | {"limit_usd": "1000000000"}],
            "invalid_value",
            "spend_limits.0.limit_usd",
            id="a billion",
        ),
        pytest.param(
            [DAY | {"limit_usd": "0.0000000001"}],
            "invalid_value",
            "spend_limits.0.limit_usd",
            id="ten decimals",
        ),
        pytest.param(
            [{"period": "day"}], "missing_field", "spend_limits.0.limit_usd", id="no amount"
        ),
        pytest.param(
            [{"limit_usd": "5"}], "missing_field", "spend_limits.0.period", id="no period"
        ),
        pytest.param(
            [DAY | {"period": "year"}], "invalid_value", "spend_limits.0.period", id="a year"
        ),
        pytest.param(
            [DAY | {"scope": "model"}], "invalid_value", "spend_limits.0.scope", id="of a model"
        ),
        pytest.param(
            [DAY | {"mode": "firm"}], "invalid_value", "spend_limits.0.mode", id="another mode"
        ),
        pytest.param(
            [DAY | {"thresholds": [0]}],
            "invalid_value",
            "spend_limits.0.thresholds.0",
            id="no percent",
        ),
        pytest.param(
            [DAY | {"thresholds": [80, 50]}],
            "invalid_value",
            "spend_limits.0.thresholds",
            id="thresholds that fall",
        ),
        pytest.param(
            [DAY | {"thresholds": [50, 50]}],
            "invalid_value",
            "spend_limits.0.thresholds",
            id="a threshold twice",
        ),
        pytest.param(
            [DAY | {"currency": "EUR"}], "unknown_field", "spend_limits.0.currency", id="unknown"
        ),
        pytest.param(
            [DAY, DAY | {"scope": "key", "limit_usd": "5.01"}],
            "invalid_value",
            "spend_limits.1.limit_usd",
            id="a key's above the team's",
        ),
        pytest.param(
            [DAY, DAY | {"period": "month", "limit_usd": "4"}],
            "invalid_value",
            "spend_limits.0.limit_usd",
            id="a day's above the month's",
        ),
    ],
)
async def test_impossible_limits_of_spend_are_refused(
    operator: httpx.AsyncClient, limits: list[Json], code: str, field: str
) -> None:
    numbers = {"rpm": 60, "tpm": 60_000, "spend_limits": limits}
    await refused(operator.put(f"/tiers/{new_name('tier')}", json=numbers), 422, code, field)


async def test_possible_limits_of_spend_are_told(operator: httpx.AsyncClient) -> None:
    limits = [
        DAY | {"limit_usd": "0", "scope": "key"},
        DAY | {"limit_usd": "999999999.999999999", "mode": "soft", "thresholds": []},
        {"period": "month", "limit_usd": None, "scope": "key"},
        {"period": "month", "limit_usd": "7.10", "mode": "soft", "thresholds": [1, 1000]},
    ]
    numbers = {"rpm": 60, "tpm": 60_000, "spend_limits": limits}
    made = await told(operator.put(f"/tiers/{new_name('tier')}", json=numbers), 201)
    defaults = {"scope": "team", "mode": "hard", "thresholds": [50, 80, 95, 100]}
    assert made["spend_limits"] == [
        *(defaults | limit for limit in limits[:3]),
        defaults | limits[3] | {"limit_usd": "7.1"},
    ]


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
