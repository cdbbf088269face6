"""The OpenAPI document: complete, and its examples are true."""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from control_plane.handlers import (
    accounts,
    errors,
    events,
    keys,
    limits,
    openapi,
    prices,
    records,
    teams,
    tiers,
)
from control_plane.handlers.api import api
from control_plane.handlers.fields import Asked, Told

Json = dict[str, Any]

# What only stands inside other models, whose examples show it.
INNER = {
    "CachedBalance",
    "Charge",
    "ErrorDetail",
    "LimitState",
    "SpendAmounts",
    "NewUsdPerMillion",
    "Usage",
    "UsdPerMillion",
}


@pytest.fixture(scope="module")
def application() -> FastAPI:
    return api(None)  # type: ignore[arg-type] # no handler runs here


@pytest.fixture(scope="module")
def document(application: FastAPI) -> Json:
    return openapi.describe(application)


def operations(document: Json) -> Iterator[tuple[str, Json]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref":
                yield inner
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_every_address_of_the_contract_is_there(document: Json) -> None:
    assert {name.replace("/admin/v1", "") for name, _ in operations(document)} == {
        "POST /teams",
        "GET /teams",
        "GET /teams/{team_id}",
        "PUT /teams/{team_id}/tier",
        "POST /teams/{team_id}/keys",
        "GET /teams/{team_id}/keys",
        "PATCH /keys/{key_id}",
        "POST /keys/{key_id}/rotate",
        "DELETE /keys/{key_id}",
        "POST /teams/{team_id}/credits",
        "POST /teams/{team_id}/adjustments",
        "GET /teams/{team_id}/account",
        "GET /teams/{team_id}/ledger",
        "GET /teams/{team_id}/records",
        "GET /teams/{team_id}/records/{inference_id}",
        "GET /teams/{team_id}/limits",
        "PUT /tiers/{tier_id}",
        "GET /tiers/{tier_id}",
        "GET /tiers",
        "POST /prices",
        "GET /prices",
        "GET /events",
        "GET /events/{event_id}",
        "GET /webhook-deliveries",
        "GET /webhook-deliveries/{message_id}",
    }


def test_every_operation_says_what_it_needs_and_answers(document: Json) -> None:
    assert document["openapi"].startswith("3.1")
    assert document["security"] == [{"AdminToken": []}]
    ids = [operation["operationId"] for _, operation in operations(document)]
    assert len(set(ids)) == len(ids)
    for name, operation in operations(document):
        assert operation["description"], name
        assert operation["tags"], name
        assert "security" not in operation, name
        responses = operation["responses"]
        assert {"401", "422", "503"} <= set(responses), name
        assert ("413" in responses) == ("requestBody" in operation), name
        assert ("404" in responses) == ("{" in name and not name.startswith("PUT /admin/v1/tiers"))
        for status, response in responses.items():
            schema = response["content"]["application/json"]["schema"]
            is_error = schema.get("$ref") == "#/components/schemas/ErrorAnswer"
            assert is_error == (status >= "400"), (name, status)


def test_creations_take_an_idempotency_key(document: Json) -> None:
    for name, operation in operations(document):
        headers = [p["name"] for p in operation.get("parameters", []) if p["in"] == "header"]
        assert headers == (["Idempotency-Key"] if name.startswith("POST ") else []), name


def test_nothing_refers_to_what_is_not_there(document: Json) -> None:
    for reference in references(document):
        found = document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
        assert found


def test_no_amount_is_a_number(document: Json) -> None:
    def numbers(value: object) -> Iterator[object]:
        if isinstance(value, dict):
            if value.get("type") == "number":
                yield value
            for inner in value.values():
                yield from numbers(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from numbers(inner)

    assert list(numbers(document)) == []


def models() -> list[type[BaseModel]]:
    modules = (accounts, errors, events, keys, limits, prices, records, teams, tiers)
    return [
        value
        for module in modules
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, Asked | Told)
        and value.__module__ == module.__name__
        and value.__name__ not in INNER
        and not value.__name__.startswith("Page[")
        and not value.__name__.endswith("Asked")  # queries: each parameter describes itself
    ]


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__name__)
def test_examples_are_what_the_api_takes_and_tells(model: type[BaseModel]) -> None:
    (example,) = model.model_json_schema()["examples"]
    read = model.model_validate(example)
    if issubclass(model, Told):
        assert read.model_dump(mode="json", exclude_unset=True).keys() == example.keys()
        assert set(example) >= {
            name for name, field in model.model_fields.items() if field.is_required()
        }
        # The example is a whole answer: what is told has no fields that only sometimes appear.
        assert model.__name__ == "ErrorAnswer" or set(example) == set(model.model_fields)
