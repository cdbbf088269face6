"""Prices: no class is free by accident, nothing is changed afterwards."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest
from integration.control_plane.opened import Json, refused, told
from integration.tables.rows import new_name


def new_price(**changed: object) -> Json:
    usd = {"input": "1", "output": "4"}
    return {"provider": "fake", "model": new_name("model"), "usd_per_million": usd} | changed


def from_now(**distance: float) -> str:
    return (datetime.now(UTC) + timedelta(**distance)).isoformat()


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        pytest.param(
            {"input": "1", "output": "4"},
            ("1", "1", "1", "1", "4", "4"),
            id="what isn't named costs what input or output costs",
        ),
        pytest.param(
            {
                "input": "1.00",
                "cache_read": "0.10",
                "cache_write_5m": "1.25",
                "cache_write_1h": "2",
                "output": "4",
                "reasoning": "3",
            },
            ("1", "0.1", "1.25", "2", "4", "3"),
            id="every class has its own",
        ),
        pytest.param(
            {"input": "1", "cache_read": "0", "output": "4"},
            ("1", "0", "1", "1", "4", "4"),
            id="free on purpose",
        ),
        pytest.param(
            {"input": "0.000000000000000000000000000001", "output": "1000000"},
            ("0.000000000000000000000000000001",) * 4 + ("1000000",) * 2,
            id="every digit",
        ),
    ],
)
async def test_every_class_has_a_price(
    operator: httpx.AsyncClient, asked: Json, stored: tuple[str, ...]
) -> None:
    new = new_price(usd_per_million=asked)
    made = await told(operator.post("/prices", json=new), 201)
    usd = made["usd_per_million"]
    names = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")
    assert tuple(usd[name] for name in names) == stored
    del made["event_id"]
    assert (await told(operator.get("/prices", params={"model": new["model"]})))["items"] == [made]


@pytest.mark.parametrize(
    ("changed", "code", "field"),
    [
        pytest.param(
            {"provider": "a b"}, "invalid_value", "provider", id="a space in the provider"
        ),
        pytest.param({"model": ""}, "invalid_value", "model", id="no model"),
        pytest.param({"model": "m\x00"}, "invalid_value", "model", id="NUL in the model"),
        pytest.param(
            {"usd_per_million": {"input": "1"}},
            "missing_field",
            "usd_per_million.output",
            id="no price of output",
        ),
        pytest.param(
            {"usd_per_million": {"input": "-1", "output": "1"}},
            "invalid_value",
            "usd_per_million.input",
            id="a negative price",
        ),
        pytest.param(
            {"usd_per_million": {"input": 1, "output": "1"}},
            "invalid_value",
            "usd_per_million.input",
            id="a JSON number",
        ),
        pytest.param(
            {"usd_per_million": {"input": "1000001", "output": "1"}},
            "invalid_value",
            "usd_per_million.input",
            id="more than a dollar a token",
        ),
        pytest.param(
            {"usd_per_million": {"input": "1", "output": "1", "cached": "1"}},
            "unknown_field",
            "usd_per_million.cached",
            id="a class there isn't",
        ),
        pytest.param(
            {"effective_from": from_now(minutes=-2)}, "invalid_value", "effective_from", id="past"
        ),
        pytest.param(
            {"effective_from": from_now(days=5_000)}, "invalid_value", "effective_from", id="far"
        ),
    ],
)
async def test_impossible_prices_are_refused(
    operator: httpx.AsyncClient, changed: Json, code: str, field: str
) -> None:
    new = new_price() | changed
    assert field in await refused(operator.post("/prices", json=new), 422, code, field)


async def test_a_clock_that_differs_by_seconds_is_forgiven(operator: httpx.AsyncClient) -> None:
    await told(operator.post("/prices", json=new_price(effective_from=from_now(seconds=-30))), 201)


async def test_two_versions_live_side_by_side_but_not_from_the_same_instant(
    operator: httpx.AsyncClient,
) -> None:
    later = new_price(effective_from=from_now(days=1))
    now = {key: value for key, value in later.items() if key != "effective_from"}
    second = await told(operator.post("/prices", json=later), 201)
    first = await told(operator.post("/prices", json=now), 201)
    listed = (await told(operator.get("/prices", params={"model": now["model"]})))["items"]
    assert [price["price_id"] for price in listed] == [first["price_id"], second["price_id"]]
    await refused(operator.post("/prices", json=later), 409, "price_exists", "effective_from")


async def test_prices_are_listed_by_provider(operator: httpx.AsyncClient) -> None:
    provider = new_name("provider")
    made = await told(operator.post("/prices", json=new_price(provider=provider)), 201)
    listed = (await told(operator.get("/prices", params={"provider": provider})))["items"]
    assert [price["price_id"] for price in listed] == [made["price_id"]]
